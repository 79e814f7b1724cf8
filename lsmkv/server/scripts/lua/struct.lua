-- The library struct: numbers and strings as the bytes of C's structures.
--
-- A format is a row of options: > < = for the order of bytes, ! for alignment, x for a byte of
-- padding, b h i l T for integers (B H I L without a sign; i4 has four bytes), f d for floating
-- point, s for a string that ends in a zero byte, and c for characters: c5 five, c0 as many as the
-- number before it says.  Blanks between options are ignored.

local ieee = ...
local byte, char, find, match, reverse, sub =
  string.byte, string.char, string.find, string.match, string.reverse, string.sub
local concat, error, floor, log, pcall, rep, select, tonumber, tostring, type, unpack =
  table.concat, error, math.floor, math.log, pcall, string.rep, select, tonumber, tostring, type, unpack

local SIZES = { b = 1, h = 2, l = 8, T = 8, f = 4, d = 8, x = 1, i = 4 }
local MOST_BYTES = 32
local MOST_ALIGNED = 8
local LARGEST = 2147483647

-- The bits that two whole numbers have in common.
local function common_bits(one, other)
  local found, place = 0, 1
  while one > 0 and other > 0 do
    local odd, odder = one % 2, other % 2
    found = found + odd * odder * place
    one, other, place = (one - odd) / 2, (other - odder) / 2, place * 2
  end
  return found
end

-- The options of a format, one after the other: the letter, its size, and the padding before it.
-- The state has the order of bytes and the alignment.
local function next_option(layout, at, state, total)
  local letter = sub(layout, at, at)
  local lowered = letter:lower()
  local size
  at = at + 1
  if lowered == "b" or lowered == "h" or lowered == "l" or letter == "T" or letter == "f"
    or letter == "d" or letter == "x" then
    size = SIZES[letter] or SIZES[lowered]
  elseif letter == "c" or lowered == "i" then
    local digits = match(layout, "^%d*", at)
    at = at + #digits
    size = tonumber(digits) or (letter == "c" and 1 or SIZES.i)
    if size > LARGEST then
      error("integral size overflow", 0)
    end
    if letter ~= "c" and size > MOST_BYTES then
      error("integral size " .. size .. " is larger than limit of " .. MOST_BYTES, 0)
    end
  else
    size = 0
  end
  local padding = 0
  if size ~= 0 and letter ~= "c" and letter ~= "x" then
    local align = size > state.align and state.align or size
    if align > 1 then
      padding = common_bits(align - common_bits(total, align - 1), align - 1)
    end
  end
  return letter, size, padding, at
end

local function argument_error(place, name, message)
  error("bad argument #" .. place .. " to '" .. name .. "' (" .. message .. ")", 0)
end

-- An option that changes the state.  Returns where the next one begins.
local function control(letter, layout, at, state, name)
  if letter == " " then
    return at
  elseif letter == ">" then
    state.little = false
  elseif letter == "<" then
    state.little = true
  elseif letter == "!" then
    local digits = match(layout, "^%d*", at)
    local align = tonumber(digits) or MOST_ALIGNED
    if align == 0 or 2 ^ floor(log(align) / log(2) + 0.5) ~= align then
      error("alignment " .. align .. " is not a power of 2", 0)
    end
    state.align = align
    return at + #digits
  else
    argument_error(1, name, "invalid format option '" .. letter .. "'")
  end
  return at
end

local function number_argument(value, place, name)
  local number = (type(value) == "number" or type(value) == "string") and tonumber(value)
  if not number then
    local kind = type(value)
    argument_error(place, name, "number expected, got " .. kind)
  end
  return number
end

local function string_argument(value, place, name)
  if type(value) ~= "string" and type(value) ~= "number" then
    local kind = type(value)
    argument_error(place, name, "string expected, got " .. kind)
  end
  return tostring(value)
end

-- A number as bytes: what C makes of it by a cast to an integer of 64 bits.
local function integer_bytes(value, size, little)
  if value ~= value or value >= 2 ^ 64 or value < -2 ^ 63 then
    value = -2 ^ 63
  end
  value = value < 0 and -floor(-value) or floor(value)
  local bytes = {}
  for at = 1, size do
    if at > 8 then
      bytes[at] = "\0"
    else
      local low = value % 256
      bytes[at] = char(low)
      value = (value - low) / 256
    end
  end
  local text = concat(bytes)
  return little and text or reverse(text)
end

local function integer_of(text, is_signed, little)
  if not little then
    text = reverse(text)
  end
  local size = #text
  local low, high = 0, 0
  for at = size > 8 and 8 or size, 1, -1 do
    if at > 4 then
      high = high * 256 + byte(text, at)
    else
      low = low * 256 + byte(text, at)
    end
  end
  if is_signed and byte(text, size > 8 and 8 or size) >= 128 then
    if size > 4 then
      high = high - 256 ^ ((size > 8 and 8 or size) - 4)
    else
      low = low - 256 ^ size
    end
  end
  return high * 2 ^ 32 + low
end

local function new_state()
  return { little = true, align = 1 }
end

local function packed(layout, ...)
  local out, state, total, given, at = {}, new_state(), 0, 1, 1
  while at <= #layout do
    local letter, size, padding
    letter, size, padding, at = next_option(layout, at, state, total)
    total = total + padding
    out[#out + 1] = rep("\0", padding)
    local lowered = letter:lower()
    if letter == "T" or lowered == "b" or lowered == "h" or lowered == "l" or lowered == "i" then
      local value = number_argument((select(given, ...)), given + 1, "pack")
      given = given + 1
      out[#out + 1] = integer_bytes(value, size, state.little)
    elseif letter == "x" then
      out[#out + 1] = "\0"
    elseif letter == "f" or letter == "d" then
      local value = number_argument((select(given, ...)), given + 1, "pack")
      given = given + 1
      local made = letter == "f" and ieee.pack_float(value) or ieee.pack_double(value)
      out[#out + 1] = state.little and reverse(made) or made
    elseif letter == "c" or letter == "s" then
      local value = string_argument((select(given, ...)), given + 1, "pack")
      given = given + 1
      if size == 0 then
        size = #value
      end
      if #value < size then
        argument_error(given + 1, "pack", "string too short")
      end
      out[#out + 1] = sub(value, 1, size)
      if letter == "s" then
        out[#out + 1] = "\0"
        size = size + 1
      end
    else
      at = control(letter, layout, at, state, "pack")
    end
    total = total + size
  end
  return concat(out)
end

local function unpacked(layout, text, start)
  local state, made, count, at = new_state(), {}, 0, 1
  local total = start - 1
  while at <= #layout do
    local letter, size, padding
    letter, size, padding, at = next_option(layout, at, state, total)
    total = total + padding
    if total + size > #text then
      argument_error(2, "unpack", "data string too short")
    end
    local lowered = letter:lower()
    if letter == "T" or lowered == "b" or lowered == "h" or lowered == "l" or lowered == "i" then
      local value = 0
      if size > 0 then
        local part = sub(text, total + 1, total + size)
        value = integer_of(part, letter == lowered, state.little)
      end
      count = count + 1
      made[count] = value
    elseif letter == "x" then
      -- padding
    elseif letter == "f" or letter == "d" then
      local part = sub(text, total + 1, total + size)
      part = state.little and reverse(part) or part
      count = count + 1
      made[count] = letter == "f" and ieee.unpack_float(part) or ieee.unpack_double(part)
    elseif letter == "c" then
      if size == 0 then
        if count == 0 or type(made[count]) ~= "number" then
          error("format 'c0' needs a previous size", 0)
        end
        size = made[count]
        count = count - 1
        if size < 0 or total + size > #text then
          argument_error(2, "unpack", "data string too short")
        end
      end
      count = count + 1
      made[count] = sub(text, total + 1, total + size)
    elseif letter == "s" then
      local stop = find(text, "\0", total + 1, true) or find(text, "%z", total + 1)
      if not stop then
        error("unfinished string in data", 0)
      end
      size = stop - total
      count = count + 1
      made[count] = sub(text, total + 1, stop - 1)
    else
      at = control(letter, layout, at, state, "unpack")
    end
    total = total + size
  end
  made[count + 1] = total + 1
  return made, count + 1
end

local function measured(layout)
  local state, total, at = new_state(), 0, 1
  while at <= #layout do
    local letter, size, padding
    letter, size, padding, at = next_option(layout, at, state, total)
    total = total + padding
    if letter == "s" then
      argument_error(1, "size", "option 's' has no fixed size")
    elseif letter == "c" and size == 0 then
      argument_error(1, "size", "option 'c0' has no fixed size")
    elseif size == 0 and not find(letter, "%w") then
      at = control(letter, layout, at, state, "size")
    end
    total = total + size
  end
  return total
end

local function checked(ok, ...)
  if not ok then
    error((...), ... == "not enough memory" and 0 or 3)
  end
  return ...
end

local function check_given(count, name)
  if count == 0 then
    error("bad argument #1 to '" .. name .. "' (string expected, got no value)", 3)
  end
end

local struct = {}

function struct.pack(...)
  check_given(select("#", ...), "pack")
  return checked(pcall(function(layout, ...)
    return packed(string_argument(layout, 1, "pack"), ...)
  end, ...))
end

function struct.unpack(...)
  check_given(select("#", ...), "unpack")
  local made, count = checked(pcall(function(layout, text, start)
    layout, text = string_argument(layout, 1, "unpack"), string_argument(text, 2, "unpack")
    start = start == nil and 1 or floor(number_argument(start, 3, "unpack"))
    if start < 1 then
      argument_error(3, "unpack", "offset must be 1 or greater")
    end
    return unpacked(layout, text, start)
  end, ...))
  return unpack(made, 1, count)
end

function struct.size(...)
  check_given(select("#", ...), "size")
  return checked(pcall(function(layout)
    return measured(string_argument(layout, 1, "size"))
  end, ...))
end

return { functions = struct }
