-- What a script can reach, and how it is run.
--
-- The chunk is called once, with functions of the server and of the libraries.  It returns the
-- functions that the server calls.  Scripts see copies of nothing: each table that they share is
-- behind an empty table (a proxy) that refuses writes, and the environment is one of these.  Nothing
-- that a script can reach writes into a proxy, raw writes included.
--
-- Only strings, numbers and booleans pass between Lua and the server, and tables that the server
-- has made for a reply.  The functions of the server are called from here, under pcall, and no
-- script gets one of them.

local command, tick, sha1, log, acl_check, version, longest, version_number, chunks = ...

local debug, string, table, math, coroutine = debug, string, table, math, coroutine
local assert, error, getmetatable, loadstring, next, pairs, pcall, rawequal, rawget, rawset =
  assert, error, getmetatable, loadstring, next, pairs, pcall, rawequal, rawget, rawset
local select, setfenv, setmetatable, tonumber, tostring, type, unpack, xpcall =
  select, setfenv, setmetatable, tonumber, tostring, type, unpack, xpcall
local collectgarbage = collectgarbage
local getinfo, sethook = debug.getinfo, debug.sethook
local byte, find, format, gsub, sub =
  string.byte, string.find, string.format, string.gsub, string.sub
local concat, floor = table.concat, math.floor
local create, resume, status = coroutine.create, coroutine.resume, coroutine.status

local CHUNK = "=sandbox"       -- the name of this chunk, which is never stopped
local LIBRARY = "=library"     -- of those of cjson and the others
local STEP = 5000              -- instructions between two looks at the time
local MOST_JUMPS = 10000       -- the compiler takes the square of their number
local LONGER = 64 * 1024       -- bytes that frames.py may add to a script
local MANY_WORDS = 7900        -- of a command; the stack of C has room for little more
local MOST_NAMED = 3           -- parameters before "...", see bytecode.lua
local LONGEST_LINE = 4096      -- bytes of a message for the log
local NO_MEMORY = "not enough memory"
local READONLY = "Attempt to modify a readonly table"
local PLAIN = { string = true, number = true }

-- Stopping: the server answers with true when a script must end.  From then on every instruction
-- raises an error, so that no pcall can go on.  It answers with a number to be asked more often, or
-- less: so many instructions apart.

local stopping, out_of_memory = false, false
local in_script = false
local step = STEP
local hook

local function must_stop()
  local answer = stopping or tick()
  if answer then
    if answer == true then
      stopping, step = true, 1
    else
      step = answer
    end
    sethook(hook, "", step)
  end
  return stopping
end

function hook()
  if in_script and must_stop() and getinfo(2, "S").source ~= CHUNK then
    error("stopped", 0)  -- what is here ends by itself
  end
end

local function stop()
  stopping, step = true, 1
  sethook(hook, "", 1)
  error("stopped", 0)
end

-- Called before what takes C some time.
local function look()
  if in_script and must_stop() then
    error("stopped", 0)
  end
end

-- A script that has needed too much memory ends: it cannot go on with an error that it catches.
local function check_memory(problem)
  if problem == NO_MEMORY and in_script then
    out_of_memory = true
    stop()
  end
end

-- Tables that scripts share

local G = { _VERSION = _VERSION }
local real = {}     -- the table behind a proxy

local function refuse()
  error(READONLY, 2)
end

local function protect(contents)
  local proxy = setmetatable({}, { __index = contents, __newindex = refuse, __metatable = false })
  real[proxy] = contents
  return proxy
end

local of_strict = {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
}
setmetatable(G, of_strict)
local env = protect(G)
G._G = env

for _, name in ipairs({ "assert", "error", "ipairs", "next", "rawequal", "select", "tonumber",
  "tostring", "type", "gcinfo" }) do
  G[name] = _G[name]
end

local ieee = chunks.ieee()
local encoded = chunks.replies()
local most_named = chunks.bytecode()
local tables = chunks.tables(look, real, READONLY)
G.unpack, tables.unpack = tables.unpack, nil

function G.collectgarbage(option, argument)
  if option == "count" or option == "collect" or option == "step" or option == nil then
    look()
    return collectgarbage(option, argument)
  end
  return 0  -- how memory is collected is no matter of scripts
end

local of_env = protect({})

function G.getmetatable(value)
  if real[value] then
    return value == env and of_env or nil
  end
  return getmetatable(value)
end

function G.setmetatable(value, metatable)
  if real[value] then
    error(READONLY, 0)
  end
  return setmetatable(value, metatable)
end

function G.rawget(value, key)
  return rawget(real[value] or value, key)
end

function G.rawset(value, key, new)
  if real[value] then
    error(READONLY, 0)
  end
  return rawset(value, key, new)
end

function G.pairs(value)
  local contents = real[value]
  if contents then
    value = {}
    for key, one in next, contents do
      value[key] = one
    end
  end
  return pairs(value)
end

local function text_of_error(ok, problem, ...)
  if not ok then
    check_memory(problem)
  end
  if not ok and type(problem) == "table" then
    local text = rawget(problem, "err")
    if type(text) == "string" then
      return false, text
    end
  end
  return ok, problem, ...
end

function G.pcall(called, ...)
  return text_of_error(pcall(called, ...))
end

-- A handler of Lua's own runs before the error is unwound: if the hook has raised it, with no hook,
-- and so without end.  No script can see the difference: none sees the stack.
local function handled(handler, ok, ...)
  if ok then
    return true, ...
  end
  check_memory((...))
  local _, result = pcall(handler, (...))
  return false, result
end

function G.xpcall(called, handler)
  return handled(handler, pcall(called))
end

local function compiled(source, name)
  if sub(source, 1, 1) == "\27" then
    return nil, "bytecode is not loaded"
  elseif #source > longest + LONGER then
    return nil, "script too long: " .. #source .. " bytes (limit " .. longest .. ")"
  elseif #source > 2 * MOST_JUMPS then
    local count = 0
    for _, word in ipairs({ "and", "or", "break", "elseif" }) do
      count = count + select(2, gsub(source, "%f[%a]" .. word .. "%f[%A]", ""))
    end
    if count > MOST_JUMPS then
      return nil, "script too complex: " .. count .. " jumps (limit " .. MOST_JUMPS .. ")"
    end
  end
  look()
  local made, problem = loadstring(source, name)
  check_memory(problem)
  if made then
    if find(source, "...", 1, true) and most_named(made) > MOST_NAMED then
      return nil, "function with more than " .. MOST_NAMED .. " named parameters and '...'"
    end
    setfenv(made, env)
  end
  return made, problem
end

function G.loadstring(source, name)
  if not PLAIN[type(source)] then
    error("bad argument #1 to 'loadstring' (string expected, got " .. type(source) .. ")", 2)
  end
  source = tostring(source)
  return compiled(source, name or source)
end

function G.load(reader, name)
  local parts, size = {}, 0
  while size <= longest do  -- a reader of C's may never end
    local part = reader()
    look()
    if part == nil or part == "" then
      break
    elseif not PLAIN[type(part)] then
      return nil, "reader function must return a string"
    end
    size = size + #tostring(part)
    parts[#parts + 1] = part
  end
  return compiled(concat(parts), name or "=(load)")
end

-- Strings

local text = chunks.patterns(look)
for name, one in pairs(string) do
  text[name] = text[name] or one
end
local of_strings = getmetatable("")
of_strings.__index = text
of_strings.__metatable = protect({ __index = protect(text) })

-- Numbers: the generator of drand48, as in Redis, with its first state

local SEED, HALF = 0x330E, 2 ^ 24
local state = 0x1234ABCD330E

local function random_31_bits()
  local low = state % HALF
  local high = (state - low) / HALF
  -- 0x5DEECE66D is 1502 * 2^24 + 15525485.
  local upper = (1502 * low + 15525485 * high) % HALF
  state = (upper * HALF + 15525485 * low + 11) % 2 ^ 48
  return floor(state / 2 ^ 17)
end

local numbers = {}
for name, one in pairs(math) do
  numbers[name] = one
end

function numbers.randomseed(seed)
  if type(tonumber(seed)) ~= "number" then
    error("bad argument #1 to 'randomseed' (number expected, got " .. type(seed) .. ")", 2)
  end
  seed = tonumber(seed)
  if seed - seed ~= 0 then  -- infinite, or not a number
    seed = 0
  end
  state = (seed < 0 and -floor(-seed) or floor(seed)) % 2 ^ 32 * 2 ^ 16 + SEED
end

function numbers.random(...)
  local count = select("#", ...)
  local first, last = ...
  local drawn = random_31_bits() % 2147483647 / 2147483647
  if count == 0 then
    return drawn
  elseif count > 2 then
    error("wrong number of arguments", 2)
  end
  for at = 1, count do
    local given = select(at, ...)
    if not tonumber(given) then
      error("bad argument #" .. at .. " to 'random' (number expected, got " .. type(given) .. ")", 2)
    end
  end
  if count == 1 then
    first, last = 1, first
  end
  first, last = floor(first), floor(last)
  if first > last then
    error("bad argument #" .. count .. " to 'random' (interval is empty)", 2)
  end
  return floor(drawn * (last - first + 1)) + first
end

-- Coroutines: a hook of Lua's belongs to one of them

local threads = {}
for name, one in pairs(coroutine) do
  threads[name] = one
end

function threads.create(body)
  local made = create(body)
  sethook(made, hook, "", step)
  return made
end

local function resumed(ok, ...)
  if ok then
    return ...
  end
  check_memory((...))
  error((...), 3)
end

local function resumed_safely(ok, ...)
  if not ok then
    check_memory((...))
  end
  return ok, ...
end

function threads.resume(made, ...)
  return resumed_safely(resume(made, ...))
end

function threads.wrap(body)
  local made = threads.create(body)
  return function(...)
    return resumed(resume(made, ...))
  end
end

-- redis.*

local redis = {
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  REDIS_VERSION = version, REDIS_VERSION_NUM = version_number,
}
local script_resp3 = false

local function problem_of(message)
  return { err = message, ignore_error_stats_update = true }
end

-- Whether all arguments are strings.  Values of other types must not get to the server.
local function all_strings(count, a, b, c, ...)
  if type(a) ~= "string" or (count > 1 and type(b) ~= "string")
    or (count > 2 and type(c) ~= "string") then
    return false
  end
  return count <= 3 or all_strings(count - 3, ...)
end

-- Run a command.  Returns its reply, or nil and the text of an error.
local function ran(...)
  local count = select("#", ...)
  local ok, value, kind
  if count == 0 then
    return nil, "ERR Please specify at least one argument for this redis lib call"
  elseif count <= 30 and all_strings(count, ...) then
    ok, value, kind = pcall(command, ...)
  else
    local words = { ... }
    for at = 1, count do
      local word = words[at]
      if type(word) == "number" then
        words[at] = format("%.17g", word)
      elseif type(word) ~= "string" then
        return nil, "ERR Lua redis lib command arguments must be strings or integers"
      end
    end
    if count < MANY_WORDS then
      ok, value, kind = pcall(command, unpack(words, 1, count))
    else
      ok, value, kind = pcall(command, words)
    end
  end
  if not ok then
    check_memory(value)
    if stopping then
      stop()
    end
    return nil, "ERR internal error: the server's log has the details"
  elseif kind == nil then
    return value
  elseif kind == 1 then
    return { ok = value }
  elseif kind == 2 then
    return nil, value
  elseif kind == 3 then
    return nil  -- the null of RESP3
  elseif kind == 4 then
    stop()
  end
  look()  -- the value is large
  return value
end

function redis.call(...)
  local value, problem = ran(...)
  if problem then
    error(problem_of(problem), 0)
  end
  return value
end

function redis.pcall(...)
  local value, problem = ran(...)
  if problem then
    return problem_of(problem)
  end
  return value
end

local function fail(message)
  error(problem_of("ERR " .. message), 0)
end

local function single(name, ...)
  local value = ...
  if select("#", ...) ~= 1 or type(value) ~= "string" then
    return { err = "ERR wrong number or type of arguments" }
  end
  return { [name] = value }
end

function redis.status_reply(...)
  return single("ok", ...)
end

function redis.error_reply(...)
  local made = single("err", ...)
  local message = gsub(made.err, "^%-", "")
  local stop = #message
  while byte(message, stop) == 10 or byte(message, stop) == 13 do
    stop = stop - 1
  end
  message = sub(message, 1, stop)
  made.err = find(message, " ", 1, true) and message or "ERR " .. message
  return made
end

function redis.sha1hex(...)
  local value = ...
  if select("#", ...) ~= 1 then
    fail("wrong number of arguments")
  end
  look()
  return sha1(PLAIN[type(value)] and tostring(value) or "")
end

function redis.log(...)
  local count = select("#", ...)
  local level = ...
  if count < 2 then
    fail("redis.log() requires two arguments or more.")
  elseif type(level) ~= "number" and not tonumber(level) then
    fail("First argument must be a number (log level).")
  end
  level = tonumber(level)
  if level < 0 or level > 3 then
    fail("Invalid debug level.")
  end
  local words = {}
  for at = 2, count do
    local word = select(at, ...)
    if PLAIN[type(word)] then
      words[#words + 1] = tostring(word)
    end
  end
  log(floor(level), sub(concat(words, " "), 1, LONGEST_LINE))
end

function redis.setresp(...)
  local number = ...
  if select("#", ...) ~= 1 then
    fail("redis.setresp() requires one argument.")
  elseif number ~= 2 and number ~= 3 then
    fail("RESP version must be 2 or 3.")
  end
  script_resp3 = number == 3
  pcall(command, script_resp3)
end

function redis.set_repl(...)
  local flags = ...
  if select("#", ...) ~= 1 then
    fail("redis.set_repl() requires two arguments.")
  elseif type(flags) ~= "number" or flags < 0 or flags > 3 then
    fail("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
  end
end

function redis.replicate_commands()
  return true
end

function redis.breakpoint()
  return false
end

function redis.debug() end

function redis.acl_check_cmd(...)
  local words = { ... }
  if #words == 0 then
    fail("Please specify at least one argument for this redis.acl_check_cmd() call")
  end
  for at = 1, select("#", ...) do
    if not PLAIN[type(words[at])] then
      fail("redis.acl_check_cmd() require strings or integers")
    end
    words[at] = type(words[at]) == "number" and format("%.17g", words[at]) or words[at]
  end
  local permitted = acl_check(unpack(words))
  if permitted == nil then
    fail("Invalid command passed to redis.acl_check_cmd()")
  end
  return permitted
end

-- The environment

for name, one in pairs(table) do
  tables[name] = tables[name] or one
end
G.string = real[of_strings.__metatable].__index
G.table = protect(tables)
G.math = protect(numbers)
G.coroutine = protect(threads)
G.redis = protect(redis)
local resets = {}
for _, name in ipairs({ "bit", "cjson", "cmsgpack", "struct" }) do
  local library = chunks[name](ieee)
  G[name] = protect(library.functions)
  resets[#resets + 1] = library.reset
end

-- Libraries of functions.  While one is loaded it sees nothing but `redis`, and there only what is
-- here.  Its functions see what scripts see, but KEYS and ARGV.

local FLAGS = {
  ["no-writes"] = 1, ["allow-oom"] = 2, ["allow-stale"] = 4, ["no-cluster"] = 8,
  ["allow-cross-slot-keys"] = 16,
}
local behind_env = debug.getmetatable(env)
local registered    -- by name, while a library is loaded
local names         -- the same names in lower case
local descriptions  -- of them, see functions.py
local called        -- the function of a library that is to run; "" to load it

local function as_string(value, problem)
  if not PLAIN[type(value)] then
    fail(problem)
  end
  return tostring(value)
end

local function as_function(value, problem)
  if type(value) ~= "function" then
    fail(problem)
  end
  return value
end

local function sum_of_flags(flags)
  if type(flags) ~= "table" then
    fail("flags argument to redis.register_function must be a table representing function flags")
  end
  local sum, seen = 0, {}
  for _, flag in ipairs(flags) do
    look()
    local bit = PLAIN[type(flag)] and FLAGS[string.lower(flag)] or fail("unknown flag given")
    sum, seen[bit] = sum + (seen[bit] and 0 or bit), true
  end
  return sum
end

local function named_arguments(given)
  local name, callback, description
  local flags = 0
  for key, value in next, given do
    key = string.lower(as_string(key,
      "named argument key given to redis.register_function is not a string"))
    if key == "function_name" then
      name = as_string(value,
        "function_name argument given to redis.register_function must be a string")
    elseif key == "description" then
      description = as_string(value,
        "description argument given to redis.register_function must be a string")
    elseif key == "callback" then
      callback = as_function(value,
        "callback argument given to redis.register_function must be a function")
    elseif key == "flags" then
      flags = sum_of_flags(value)
    else
      fail("unknown argument given to redis.register_function")
    end
  end
  if not name then
    fail("redis.register_function must get a function name argument")
  elseif not callback then
    fail("redis.register_function must get a callback argument")
  end
  return name, callback, flags, description
end

local function register_function(...)
  local count = select("#", ...)
  local name, callback = ...
  local flags, description = 0
  if not registered then
    fail("redis.register_function can only be called on FUNCTION LOAD command")
  elseif count < 1 or count > 2 then
    fail("wrong number of arguments to redis.register_function")
  elseif count == 2 then
    name = as_string(name, "first argument to redis.register_function must be a string")
    as_function(callback, "second argument to redis.register_function must be a function")
  elseif type(name) ~= "table" then
    fail("calling redis.register_function with a single argument is only applicable to Lua table"
      .. " (representing named arguments).")
  else
    name, callback, flags, description = named_arguments(name)
  end
  if not find(name, "^[%w_]+$") then
    fail("Library names can only contain letters, numbers, or underscores(_) and must be at least"
      .. " one character long")
  elseif names[string.lower(name)] then
    fail("Function already exists in the library")
  end
  registered[name], names[string.lower(name)] = callback, true
  descriptions[#descriptions + 1] = name .. " " .. flags .. " "
    .. (description and #description or "-") .. " " .. (description or "")
end

local while_loading = { register_function = register_function, log = redis.log }
for name, value in pairs(redis) do
  if PLAIN[type(value)] and sub(name, 1, 4) ~= "REPL" then
    while_loading[name] = value
  end
end
local only_redis = setmetatable({ redis = protect(setmetatable(while_loading, of_strict)) }, of_strict)

-- A function that runs one of a library's functions, after it has loaded the library.
local function library(chunk)
  local functions
  return function()
    local keys, arguments = G.KEYS, G.ARGV
    G.KEYS, G.ARGV = nil, nil
    if called == "" or not functions then
      functions, registered, names, descriptions = nil, {}, {}, {}
      behind_env.__index = only_redis
      chunk()
      behind_env.__index = G
      functions, registered = registered, nil
    end
    if called == "" then
      return concat(descriptions)
    end
    return (functions[called] or fail("Function not found"))(keys, arguments)
  end
end

-- Running

local HIDDEN = { [CHUNK] = true, [LIBRARY] = true, ["=[C]"] = true }

-- The text of an error, and where the script was.
local function located(problem)
  local level = 2
  local place = getinfo(level, "Sl")
  while place and (HIDDEN[place.source] or place.what == "tail") do
    level = level + 1
    place = getinfo(level, "Sl")
  end
  local message
  if type(problem) == "table" then
    message = rawget(problem, "err")
    message = type(message) == "string" and message or "ERR unknown error"
  else
    message = tostring(problem)
    local shown = ""
    if place and place.currentline > 0 then
      shown = gsub(place.short_src, "%%", "%%%%") .. ":" .. place.currentline .. ": "
    end
    message = gsub(message, "^sandbox:%d+: ", shown)
    message = gsub(message, "^library:%d+: ", shown)
    message = "ERR " .. message
  end
  if place and place.currentline > 0 then
    return { message, place.source .. ":" .. place.currentline }
  end
  return { message }
end

local function set_step(count)
  step = count
  sethook(hook, "", count)
end

local function clean()
  in_script = false
  G.KEYS, G.ARGV = nil, nil
  behind_env.__index, registered = G, nil
  for at = 1, #resets do
    resets[at]()
  end
  if step ~= STEP then
    set_step(STEP)
  end
  stopping, out_of_memory = false, false
end

-- Run a script whose keys and arguments are in tables.  Returns a reply that needs no encoding; or
-- bytes of RESP and 1; or an error, 2, and the place of the error in the script; or an error and 3,
-- if memory was lacking.
local function run_with(script, resp3, keys, arguments)
  script_resp3 = false
  G.KEYS, G.ARGV = keys, arguments
  in_script = true
  local ok, value = xpcall(script, located)
  local kind = type(value)
  local encodes = ok and (kind == "table" or (script_resp3 and kind == "boolean"))
  if encodes then
    ok, value = pcall(encoded, value, resp3, script_resp3)
    kind = type(value)
  end
  local lacked = not ok and (out_of_memory or value == NO_MEMORY)
  clean()
  if ok then
    if encodes then
      return value, 1
    elseif kind == "function" or kind == "thread" or kind == "userdata" then
      return nil
    end
    return value
  elseif lacked then
    return "ERR " .. NO_MEMORY, 3
  elseif kind == "table" then
    return value[1], 2, value[2]
  end
  return "ERR " .. tostring(value), 2
end

-- Run a script with the keys first, then its arguments.
local function run(script, resp3, count, ...)
  if count == 0 then
    return run_with(script, resp3, {}, { ... })
  elseif count == 1 then
    return run_with(script, resp3, { (...) }, { select(2, ...) })
  end
  local keys, all = {}, { ... }
  for at = 1, count do
    keys[at] = all[at]
  end
  return run_with(script, resp3, keys, { select(count + 1, ...) })
end

-- Compile a script, or a library.  Returns the function; or nil and what is wrong.
local function compile(source, is_library)
  local made, problem = compiled(source, is_library and "@user_function" or "@user_script")
  return made and is_library and library(made) or made, problem
end

-- Choose which function the next script calls, which is a library.
local function choose(name)
  called = name
end

_G.debug = nil  -- lupa would add a traceback to errors
sethook(hook, "", STEP)
return run, run_with, compile, clean, set_step, choose
