"""The outside world behind a small interface: local disk, memory, and a disk that fails."""
