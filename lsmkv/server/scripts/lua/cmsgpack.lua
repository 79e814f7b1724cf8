-- The library cmsgpack: MessagePack as Redis' scripts read and write it.
--
-- A number that is whole is packed as an integer, another as a float of four bytes if that is exact
-- and of eight otherwise.  A table whose keys are 1, 2, ... is an array.  What is nested deeper than
-- 16 tables is packed as nil.

local ieee = ...
local byte, char, sub = string.byte, string.char, string.sub
local concat, error, next, pcall, rawget, select, tostring, type, unpack =
  table.concat, error, next, pcall, rawget, select, tostring, type, unpack

local DEEPEST = 16
local NO_KEY = "table index is nil"

-- The last bytes of a whole number, the highest first; negative numbers as two's complement.
local function big_endian(value, size)
  local bytes = {}
  for at = size, 1, -1 do
    local low = value % 256
    bytes[at] = char(low)
    value = (value - low) / 256
  end
  return concat(bytes)
end

local function packed_integer(value)
  if value >= 0 then
    if value <= 127 then
      return char(value)
    elseif value <= 0xFF then
      return "\204" .. char(value)
    elseif value <= 0xFFFF then
      return "\205" .. big_endian(value, 2)
    elseif value <= 0xFFFFFFFF then
      return "\206" .. big_endian(value, 4)
    end
    return "\207" .. big_endian(value, 8)
  elseif value >= -32 then
    return char(256 + value)
  elseif value >= -128 then
    return "\208" .. char(256 + value)
  elseif value >= -32768 then
    return "\209" .. big_endian(value, 2)
  elseif value >= -2147483648 then
    return "\210" .. big_endian(value, 4)
  end
  return "\211" .. big_endian(value, 8)
end

local function packed_number(value)
  if value % 1 == 0 and value >= -2 ^ 63 and value < 2 ^ 63 then
    return packed_integer(value)
  end
  local short = ieee.pack_float(value)
  if value ~= value or ieee.unpack_float(short) == value then
    return "\202" .. short
  end
  return "\203" .. ieee.pack_double(value)
end

local function packed_string(value)
  local size = #value
  if size < 32 then
    return char(0xA0 + size) .. value
  elseif size <= 0xFF then
    return "\217" .. char(size) .. value
  elseif size <= 0xFFFF then
    return "\218" .. big_endian(size, 2) .. value
  end
  return "\219" .. big_endian(size, 4) .. value
end

-- The head of a collection: a byte for a few, else a mark with 2 or 4 bytes.
local function head(size, few, two, four)
  if size <= 15 then
    return char(few + size)
  elseif size <= 0xFFFF then
    return two .. big_endian(size, 2)
  end
  return four .. big_endian(size, 4)
end

-- The length of a table that is an array; nil of any other.
local function length_of(value)
  local most, count = 0, 0
  for key in next, value do
    if type(key) ~= "number" or key < 1 or key % 1 ~= 0 then
      return nil
    end
    if key > most then
      most = key
    end
    count = count + 1
  end
  return most == count and count or nil
end

local function append(out, value, depth)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = packed_string(value)
  elseif kind == "number" then
    out[#out + 1] = packed_number(value)
  elseif kind == "boolean" then
    out[#out + 1] = value and "\195" or "\194"
  elseif kind == "table" and depth < DEEPEST then
    local length = length_of(value)
    if length then
      out[#out + 1] = head(length, 0x90, "\220", "\221")
      for at = 1, length do
        append(out, rawget(value, at), depth + 1)
      end
      return
    end
    local place, count = #out + 1, 0
    out[place] = ""
    for key, one in next, value do
      append(out, key, depth + 1)
      append(out, one, depth + 1)
      count = count + 1
    end
    out[place] = head(count, 0x80, "\222", "\223")
  else
    out[#out + 1] = "\192"
  end
end

-- Unpacking

local function number_at(text, at, size)
  if at + size - 1 > #text then
    error("Missing bytes in input.", 0)
  end
  local value = 0
  for place = at, at + size - 1 do
    value = value * 256 + byte(text, place)
  end
  return value
end

local function signed_at(text, at, size)
  local value = number_at(text, at, size)
  if byte(text, at) >= 128 then
    if size == 8 then  -- a double has no room for 64 bits before the sign is taken off
      local high, low = number_at(text, at, 4), number_at(text, at + 4, 4)
      return (high - 2 ^ 32) * 2 ^ 32 + low
    end
    return value - 2 ^ (8 * size)
  end
  return value
end

local function string_at(text, at, size)
  if at + size - 1 > #text then
    error("Missing bytes in input.", 0)
  end
  return sub(text, at, at + size - 1), at + size
end

local value_at

local function array_at(text, at, count)
  local made = {}
  for place = 1, count do
    made[place], at = value_at(text, at)
  end
  return made, at
end

local function map_at(text, at, count)
  local made = {}
  for _ = 1, count do
    local key, value
    key, at = value_at(text, at)
    value, at = value_at(text, at)
    if key == nil then
      error(NO_KEY, 0)
    end
    made[key] = value
  end
  return made, at
end

local SIZES = { [0xD9] = 1, [0xDA] = 2, [0xDB] = 4 }

function value_at(text, at)
  local mark = byte(text, at)
  if not mark then
    error("Missing bytes in input.", 0)
  elseif mark < 0x80 then
    return mark, at + 1
  elseif mark < 0x90 then
    return map_at(text, at + 1, mark - 0x80)
  elseif mark < 0xA0 then
    return array_at(text, at + 1, mark - 0x90)
  elseif mark < 0xC0 then
    return string_at(text, at + 1, mark - 0xA0)
  elseif mark >= 0xE0 then
    return mark - 256, at + 1
  elseif mark == 0xC0 then
    return nil, at + 1
  elseif mark == 0xC2 or mark == 0xC3 then
    return mark == 0xC3, at + 1
  elseif mark == 0xCA then
    return ieee.unpack_float((string_at(text, at + 1, 4))), at + 5
  elseif mark == 0xCB then
    return ieee.unpack_double((string_at(text, at + 1, 8))), at + 9
  elseif mark == 0xCF then
    return signed_at(text, at + 1, 8), at + 9
  elseif mark >= 0xCC and mark < 0xCF then
    local size = 2 ^ (mark - 0xCC)
    return number_at(text, at + 1, size), at + 1 + size
  elseif mark >= 0xD0 and mark <= 0xD3 then
    local size = 2 ^ (mark - 0xD0)
    return signed_at(text, at + 1, size), at + 1 + size
  elseif mark == 0xDC or mark == 0xDD then
    local size = mark == 0xDC and 2 or 4
    return array_at(text, at + 1 + size, number_at(text, at + 1, size))
  elseif mark == 0xDE or mark == 0xDF then
    local size = mark == 0xDE and 2 or 4
    return map_at(text, at + 1 + size, number_at(text, at + 1, size))
  end
  local size = SIZES[mark]
  if not size then
    error("Bad data format in input.", 0)
  end
  return string_at(text, at + 1 + size, number_at(text, at + 1, size))
end

-- Up to limit values from a place on (0: all), their number, and where the next one begins.
local function values_at(text, at, limit)
  local made, count = {}, 0
  while at <= #text and (limit == 0 or count < limit) do
    count = count + 1
    made[count], at = value_at(text, at)
  end
  return made, count, at
end

local function checked(ok, ...)
  if not ok then
    error((...), (... == NO_KEY or ... == "not enough memory") and 0 or 3)
  end
  return ...
end

local function text_of(value, name)
  if type(value) ~= "string" and type(value) ~= "number" then
    local kind = value == nil and "no value" or type(value)
    error("bad argument #1 to '" .. name .. "' (string expected, got " .. kind .. ")", 3)
  end
  return tostring(value)
end

local function unpack_from(text, offset, limit)
  if offset < 0 or limit < 0 then
    error("Invalid request to unpack with offset of " .. offset .. " and limit of " .. #text
      .. ".", 3)
  elseif offset > #text then
    error("Start offset " .. offset .. " greater than input length " .. #text .. ".", 3)
  end
  local made, count, at = checked(pcall(values_at, text, offset + 1, limit))
  return at > #text and -1 or at - 1, unpack(made, 1, count)
end

local cmsgpack = {
  _NAME = "cmsgpack",
  _VERSION = "lua-cmsgpack 0.4.0",
  _COPYRIGHT = "the format is MessagePack's",
  _DESCRIPTION = "MessagePack for Lua",
}

function cmsgpack.pack(...)
  local count = select("#", ...)
  if count == 0 then
    error("bad argument #0 to 'pack' (MessagePack pack needs input.)", 2)
  end
  local out = {}
  for at = 1, count do
    append(out, (select(at, ...)), 0)
  end
  return concat(out)
end

function cmsgpack.unpack(value)
  local made, count = checked(pcall(values_at, text_of(value, "unpack"), 1, 0))
  return unpack(made, 1, count)
end

function cmsgpack.unpack_one(value, offset)
  return unpack_from(text_of(value, "unpack_one"), offset or 0, 1)
end

function cmsgpack.unpack_limit(value, limit, offset)
  return unpack_from(text_of(value, "unpack_limit"), offset or 0, limit)
end

return { functions = cmsgpack }
