"""Mistakes in what all commands share: options, streams, signals, and files that they write."""

from __future__ import annotations

from mistake import Mistake

MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "Ctrl-C ends a command like an error",
        "tools",
        "guarded",
        "raise SystemExit(INTERRUPTED) from None",
        "raise SystemExit(ERROR) from None",
        "A script goes on after Ctrl-C, which a shell knows by the status 130.",
    ),
    Mistake(
        "a closed pipe ends a command like an error",
        "tools",
        "guarded",
        "raise SystemExit(BROKEN_PIPE) from None",
        "raise SystemExit(ERROR) from None",
        "lsmkv scan DIR | head counts as failed, where other programs end by SIGPIPE.",
    ),
    Mistake(
        "SIGHUP ends a command under nohup",
        "tools",
        "exit_on_signals",
        "if signal.getsignal(number) is not signal.SIG_IGN:",
        "if signal.getsignal(number) is not None:",
        "A load that runs under nohup ends with the terminal.",
    ),
    Mistake(
        "an empty answer destroys a store",
        "tools",
        "_confirmed",
        'in ("y", "yes")',
        'not in ("n", "no")',
        "The key Enter removes a store for good.",
    ),
    Mistake(
        "a failed export leaves its temporary file",
        "tools",
        "open_output",
        "os.unlink(temporary)",
        "pass",
        "Each export that fails leaves a file, as large as it came to be.",
    ),
    Mistake(
        "an export replaces a file that is there",
        "tools",
        "_require_free",
        "if not force:",
        "if force:",
        "A file that the user has is overwritten, without --force.",
    ),
    Mistake(
        "progress is drawn on stdout",
        "tools",
        "Progress.__init__",
        "console = Console(stderr=True)",
        "console = Console()",
        "Bars are among the data of an export to a terminal, and none is on stderr.",
    ),
    Mistake(
        "lines are folded in a pipe too",
        "tools",
        "write_folded",
        "if stdout_is_terminal():",
        "if text:",
        "A program that reads the lines of verify finds some of them in two pieces.",
    ),
    Mistake(
        "a package that fails to load is a traceback",
        "tools",
        "needing",
        "except ImportError as error:",
        "except ModuleNotFoundError as error:",
        "A broken hiredis ends serve with a traceback, not with what to install.",
    ),
    Mistake(
        "an option loses its limits",
        "tools",
        "option",
        "help=words, **more)",
        "help=words)",
        "A port of 99999 is taken, and a password in the environment is not.",
    ),
    Mistake(
        "a report is broken at the console's width",
        "tools",
        "Sheet.line",
        "soft_wrap=True",
        "soft_wrap=False",
        "Lines of a report are broken once more, by a console that is narrower or no terminal.",
    ),
    Mistake(
        "the copies of a rescue stay",
        "tools",
        "_workplace",
        "shutil.rmtree(work, ignore_errors=True)",
        "pass",
        "A rescue leaves a copy of the damaged store beside the result.",
    ),
)
