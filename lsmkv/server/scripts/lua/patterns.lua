-- find, match, gmatch and gsub that can be ended.
--
-- One call of C cannot be ended, and backtracking takes as many steps as there are ways to divide
-- the subject among the items of a pattern: with k items that repeat, and n bytes, up to n^k / k!,
-- n / (k + 1) times that if the match may begin anywhere, and twice that for each "?".  A call for
-- which that bound is small goes to C.  The others go to the matcher below, which is that of
-- lstrlib.c: its steps are instructions of Lua, between which a script can be ended.

local look = ...
local byte, find, gmatch, gsub, match, rep, sub =
  string.byte, string.find, string.gmatch, string.gsub, string.match, string.rep, string.sub
local concat, error, floor, next, pcall, tonumber, tostring, type, unpack =
  table.concat, error, math.floor, next, pcall, tonumber, tostring, type, unpack
local getinfo = debug.getinfo

local FEW = 1e5     -- steps of C after which nobody looks at the time: 0.5 ms
local MANY = 1e7    -- steps of C for one call: 50 ms
local LONGEST = 10000  -- bytes of a pattern: its items are levels of recursion
local MOST_CAPTURES = 32
local SPECIAL = "[%^%$%*%+%?%.%(%[%%%-]"

-- How often items repeat and are left out, and whether the last one cannot fail: nothing behind it
-- makes the matcher come back.
local function measured(pattern)
  local repeats, options, free, at = 0, 0, false, 1
  local size = #pattern
  if byte(pattern) == 94 then
    at = 2
  end
  while at <= size do
    local one = byte(pattern, at)
    if one == 40 or one == 41 then  -- captures cannot fail, or only as an error
      at = at + 1
    else
      if one == 37 then
        local kind = byte(pattern, at + 1)
        at = at + 2
        if kind == 98 then
          at, repeats = at + 2, repeats + 1
        elseif kind and kind >= 48 and kind <= 57 then
          repeats = repeats + 1
        end
      elseif one == 91 then
        at = at + 1
        if byte(pattern, at) == 94 then
          at = at + 1
        end
        repeat
          local inner = byte(pattern, at)
          at = at + (inner == 37 and 2 or 1)
        until at > size or byte(pattern, at) == 93
        at = at + 1
      else
        at = at + 1
      end
      local suffix = byte(pattern, at)
      free = suffix == 42 or suffix == 43 or suffix == 45
      if free then
        repeats = repeats + 1
      elseif suffix == 63 then
        options = options + 1
      end
      if free or suffix == 63 then
        at = at + 1
      end
    end
  end
  return free and repeats - 1 or repeats, options
end

-- Up to which length of a subject a pattern certainly goes to C, for patterns that were used.
local longest, count_known = {}, 0

-- Whether C may do it.  Looks at the time first if that can take long.
local function in_c(size, pattern, cost)
  local repeats, options = measured(pattern)
  local bound = 2 ^ options * (#pattern + 1)
  if byte(pattern) ~= 94 then
    repeats = repeats + 1
  end
  for at = 1, repeats do
    bound = bound * (size + 1) / at
  end
  bound = bound + (cost or 0)
  if bound > FEW then
    look()
    return bound <= MANY
  end
  if #pattern <= 100 then
    if count_known >= 1000 then
      longest, count_known = {}, 0
    end
    count_known = count_known + (longest[pattern] and 0 or 1)
    longest[pattern] = longest[pattern] and longest[pattern] > size and longest[pattern] or size
  end
  return true
end

-- The matcher.  A state has the subject, the pattern, and captures: where they begin, and lengths.

local OPEN, POSITION = -1, -2
local matched

local function class_end(state, at)
  local pattern = state.pattern
  local one = byte(pattern, at)
  at = at + 1
  if one == 37 then
    if at > #pattern then
      error("malformed pattern (ends with '%')", 0)
    end
    return at + 1
  elseif one == 91 then
    if byte(pattern, at) == 94 then
      at = at + 1
    end
    repeat
      if at > #pattern then
        error("malformed pattern (missing ']')", 0)
      end
      at = at + (byte(pattern, at) == 37 and at < #pattern and 2 or 1)
    until byte(pattern, at) == 93
    return at + 1
  end
  return at
end

-- Whether the item of a pattern matches one byte, by the item.  C does it: there is nothing to
-- come back to in one item.
local function accepts(state, at, item_at, item_end)
  if at > #state.subject then
    return false
  end
  local items = state.items
  local accepted = items[item_at]
  if not accepted then
    local item = sub(state.pattern, item_at, item_end - 1)
    if item == "^" or item == "$" then
      item = "%" .. item
    end
    accepted = { item = "^" .. item }
    items[item_at] = accepted
  end
  local one = byte(state.subject, at)
  local found = accepted[one]
  if found == nil then
    found = find(sub(state.subject, at, at), accepted.item) ~= nil
    accepted[one] = found
  end
  return found
end

local function balanced(state, at, item_at)
  local pattern, subject = state.pattern, state.subject
  if item_at + 1 > #pattern then
    error("unbalanced pattern", 0)
  end
  local open, close = byte(pattern, item_at, item_at + 1)
  if byte(subject, at) ~= open then
    return nil
  end
  local depth = 1
  for place = at + 1, #subject do
    local one = byte(subject, place)
    if one == close then
      depth = depth - 1
      if depth == 0 then
        return place + 1
      end
    elseif one == open then
      depth = depth + 1
    end
  end
end

local function begin_capture(state, at, item_at, length)
  local level = state.level + 1
  if level > MOST_CAPTURES then
    error("too many captures", 0)
  end
  state.level, state.starts[level], state.lengths[level] = level, at, length
  local stop = matched(state, at, item_at)
  if not stop then
    state.level = level - 1
  end
  return stop
end

local function end_capture(state, at, item_at)
  local lengths = state.lengths
  for level = state.level, 1, -1 do
    if lengths[level] == OPEN then
      lengths[level] = at - state.starts[level]
      local stop = matched(state, at, item_at)
      if not stop then
        lengths[level] = OPEN
      end
      return stop
    end
  end
  error("invalid pattern capture", 0)
end

local function frontier(state, at, item_at, item_end)
  local item = sub(state.pattern, item_at, item_end - 1)
  local subject = state.subject
  local before = at == 1 and "\0" or sub(subject, at - 1, at - 1)
  local here = at > #subject and "\0" or sub(subject, at, at)
  return not find(before, item) and find(here, item)
end

-- Where what the rest of a pattern matches ends; nil if it does not match here.
function matched(state, at, item_at)
  local pattern, subject = state.pattern, state.subject
  while item_at <= #pattern do
    local one = byte(pattern, item_at)
    local kind = one == 37 and byte(pattern, item_at + 1)
    if one == 40 then
      if byte(pattern, item_at + 1) == 41 then
        return begin_capture(state, at, item_at + 2, POSITION)
      end
      return begin_capture(state, at, item_at + 1, OPEN)
    elseif one == 41 then
      return end_capture(state, at, item_at + 1)
    elseif one == 36 and item_at == #pattern then
      return at == #subject + 1 and at or nil
    elseif kind == 98 then
      at = balanced(state, at, item_at + 2)
      if not at then
        return nil
      end
      item_at = item_at + 4
    elseif kind == 102 then
      item_at = item_at + 2
      if byte(pattern, item_at) ~= 91 then
        error("missing '[' after '%f' in pattern", 0)
      end
      local stop = class_end(state, item_at)
      if not frontier(state, at, item_at, stop) then
        return nil
      end
      item_at = stop
    elseif kind and kind >= 48 and kind <= 57 then
      local level = kind - 48
      local length = state.lengths[level]
      if level < 1 or level > state.level or length == OPEN then
        error("invalid capture index", 0)
      end
      local start = state.starts[level]
      if length < 0 or sub(subject, start, start + length - 1) ~= sub(subject, at, at + length - 1)
      then
        return nil
      end
      at, item_at = at + length, item_at + 2
    else
      local stop = class_end(state, item_at)
      local suffix = byte(pattern, stop)
      if suffix == 63 then
        if accepts(state, at, item_at, stop) then
          local found = matched(state, at + 1, stop + 1)
          if found then
            return found
          end
        end
        item_at = stop + 1
      elseif suffix == 42 or suffix == 43 then
        local most = at
        while accepts(state, most, item_at, stop) do
          most = most + 1
        end
        for place = most, suffix == 43 and at + 1 or at, -1 do
          local found = matched(state, place, stop + 1)
          if found then
            return found
          end
        end
        return nil
      elseif suffix == 45 then
        while true do
          local found = matched(state, at, stop + 1)
          if found then
            return found
          elseif not accepts(state, at, item_at, stop) then
            return nil
          end
          at = at + 1
        end
      elseif accepts(state, at, item_at, stop) then
        at, item_at = at + 1, stop
      else
        return nil
      end
    end
  end
  return at
end

local function capture(state, level, start, stop)
  if level > state.level then
    if level > 1 then
      error("invalid capture index", 0)
    end
    return sub(state.subject, start, stop - 1)
  end
  local length = state.lengths[level]
  if length == OPEN then
    error("unfinished capture", 0)
  elseif length == POSITION then
    return state.starts[level]
  end
  return sub(state.subject, state.starts[level], state.starts[level] + length - 1)
end

local function captures(state, start, stop, all)
  local found = {}
  local count = state.level == 0 and all and 1 or state.level
  for level = 1, count do
    found[level] = capture(state, level, start, stop)
  end
  return unpack(found, 1, count)
end

local function new_state(subject, pattern)
  pattern = match(pattern, "^%Z*")  -- in C, a zero byte ends a pattern
  return { subject = subject, pattern = pattern, items = {}, starts = {}, lengths = {}, level = 0 }
end

-- The first match from a place on: where it begins, and where what follows it does.
local function search(state, at)
  local anchored = byte(state.pattern) == 94
  repeat
    state.level = 0
    local stop = matched(state, at, anchored and 2 or 1)
    if stop then
      return at, stop
    end
    at = at + 1
  until anchored or at > #state.subject + 1
end

-- A text without special characters: C looks for its first bytes, and they are compared one by
-- one.
local function plainly(subject, wanted, at)
  local size = #wanted
  local head = sub(wanted, 1, 100)
  while true do
    look()
    at = find(subject, head, at, true)
    if not at then
      return nil
    elseif sub(subject, at, at + size - 1) == wanted then
      return at, at + size - 1
    end
    at = at + 1
  end
end

-- Arguments that are wrong go to C, which says so.

local PLAIN = { string = true, number = true }

local function check_pattern(pattern)
  if #pattern > LONGEST then
    error("pattern too long", 3)
  end
end

local function is_number(value)
  return PLAIN[type(value)] and tonumber(value)
end

-- Where a search begins, as in C.
local function begin(start, size)
  start = tonumber(start or 1)
  start = start ~= start and 0 or floor(start)
  if start < 0 then
    start = size + start + 1
  end
  return start < 1 and 1 or start > size + 1 and size + 1 or start
end

local text = {}

function text.find(subject, pattern, start, plain)
  local known = longest[pattern]
  if known and type(subject) == "string" and #subject <= known then
    return find(subject, pattern, start, plain)
  elseif not PLAIN[type(subject)] or not PLAIN[type(pattern)] or start and not is_number(start) then
    return find(subject, pattern, start, plain)
  end
  subject, pattern = tostring(subject), tostring(pattern)
  if plain and #subject * #pattern < FEW then
    return find(subject, pattern, start, true)
  end
  start = begin(start, #subject)
  if plain and #subject * #pattern < MANY then
    look()
    return find(subject, pattern, start, true)
  elseif plain or not find(match(pattern, "^%Z*"), SPECIAL) then
    return plainly(subject, pattern, start)
  end
  check_pattern(pattern)
  if in_c(#subject, pattern) then
    return find(subject, pattern, start)
  end
  local state = new_state(subject, pattern)
  local first, stop = search(state, start)
  if first then
    return first, stop - 1, captures(state, first, stop, false)
  end
  return nil
end

function text.match(subject, pattern, start)
  local known = longest[pattern]
  if known and type(subject) == "string" and #subject <= known then
    return match(subject, pattern, start)
  elseif not PLAIN[type(subject)] or not PLAIN[type(pattern)] or start and not is_number(start) then
    return match(subject, pattern, start)
  end
  subject, pattern = tostring(subject), tostring(pattern)
  check_pattern(pattern)
  if in_c(#subject, pattern) then
    return match(subject, pattern, start)
  end
  local state = new_state(subject, pattern)
  local first, stop = search(state, begin(start, #subject))
  if first then
    return captures(state, first, stop, true)
  end
  return nil
end

function text.gmatch(subject, pattern)
  local known = longest[pattern]
  if known and type(subject) == "string" and #subject <= known and byte(pattern) ~= 94 then
    return gmatch(subject, pattern)
  elseif not PLAIN[type(subject)] or not PLAIN[type(pattern)] then
    return gmatch(subject, pattern)
  end
  subject, pattern = tostring(subject), tostring(pattern)
  check_pattern(pattern)
  if byte(pattern) ~= 94 and in_c(#subject, pattern) then
    return gmatch(subject, pattern)
  end
  local at, state = 1, new_state(subject, pattern)
  return function()
    while at <= #subject + 1 do
      state.level = 0
      local start = at
      local stop = matched(state, start, 1)
      at = stop and stop > start and stop or start + 1
      if stop then
        return captures(state, start, stop, true)
      end
    end
  end
end
text.gfind = text.gmatch

local function expanded(state, template, start, stop)
  return (gsub(template, "%%(.?)", function(mark)
    if mark == "" then
      return "\0"
    elseif not find(mark, "%d") then
      return mark
    elseif mark == "0" then
      return sub(state.subject, start, stop - 1)
    end
    return tostring(capture(state, tonumber(mark), start, stop))
  end))
end

-- What a match is replaced with.
local function replaced(state, replacement, kind, start, stop)
  local made
  if kind == "function" then
    made = replacement(captures(state, start, stop, true))
  elseif kind == "table" then
    made = replacement[capture(state, 1, start, stop)]
  else
    return expanded(state, replacement, start, stop)
  end
  if not made then
    return sub(state.subject, start, stop - 1)
  elseif type(made) ~= "string" and type(made) ~= "number" then
    error("invalid replacement value (a " .. type(made) .. ")", 0)
  end
  return made
end

local function substituted(subject, pattern, replacement, kind, most)
  local state, out, count, at = new_state(subject, pattern), {}, 0, 1
  local anchored = byte(pattern) == 94
  while count < most do
    state.level = 0
    local stop = matched(state, at, anchored and 2 or 1)
    if stop then
      count = count + 1
      out[#out + 1] = replaced(state, replacement, kind, at, stop)
    end
    if stop and stop > at then
      at = stop
    elseif at <= #subject then
      out[#out + 1] = sub(subject, at, at)
      at = at + 1
    else
      break
    end
    if anchored then
      break
    end
  end
  out[#out + 1] = sub(subject, at)
  return concat(out), count
end

function text.gsub(subject, pattern, replacement, most)
  local known = longest[pattern]
  if known and type(subject) == "string" and #subject <= known
    and (type(replacement) ~= "string" or #replacement < 100) then
    return gsub(subject, pattern, replacement, most)
  end
  local kind = type(replacement)
  if not PLAIN[type(subject)] or not PLAIN[type(pattern)] or most and not is_number(most)
    or not (PLAIN[kind] or kind == "function" or kind == "table") then
    return gsub(subject, pattern, replacement, most)
  end
  subject, pattern = tostring(subject), tostring(pattern)
  check_pattern(pattern)
  if kind == "number" then
    replacement, kind = tostring(replacement), "string"
  end
  local cost = 20 + (kind == "string" and 2 * #replacement or 0)
  if in_c(#subject, pattern, cost * #subject) then
    return gsub(subject, pattern, replacement, most)
  end
  return substituted(subject, pattern, replacement, kind, most and tonumber(most) or #subject + 1)
end

-- What C does byte by byte, and takes a while for what is long.
for name, one in next, { lower = string.lower, reverse = string.reverse, upper = string.upper } do
  text[name] = function(subject)
    if type(subject) == "string" and #subject > 4096 then
      look()
    end
    return one(subject)
  end
end

local function doubled(subject, count)
  if #subject * count <= 65536 then
    return rep(subject, count)
  end
  local half = doubled(subject, floor(count / 2))
  return count % 2 == 0 and half .. half or half .. half .. subject
end

function text.rep(...)
  local subject, count = ...
  if not PLAIN[type(subject)] or not is_number(count) then
    local _, problem = pcall(rep, ...)
    problem = gsub(problem, "'%?'", "'rep'")
    error(getinfo(1, "n").namewhat == "method" and gsub(problem, "#2", "#1") or problem, 2)
  end
  subject, count = tostring(subject), floor(tonumber(count))
  if subject == "" or count < 1 or count ~= count then
    return ""
  elseif #subject * count < 65536 then
    return rep(subject, count)
  elseif #subject * count > 2 ^ 31 then
    error("resulting string too large", 2)
  end
  local made = doubled(subject, count)
  look()
  return made
end

return text
