-- The library bit: operations on 32-bit integers, as in LuaJIT and Redis.
--
-- A number is reduced modulo 2^32, and the result is signed.  and works byte by byte through a
-- table of 65,536 entries, which takes a megabyte and 10 ms once; or and xor follow from it.

local error, floor, format, ipairs, select, tonumber, type =
  error, math.floor, string.format, ipairs, select, tonumber, type

local WHOLE, SIGN = 2 ^ 32, 2 ^ 31
local ROUNDING = 2 ^ 52 + 2 ^ 51  -- adding it rounds to a whole number
-- From that of single bits to that of two, four and eight.
local smaller = { [0] = 0, 0, 0, 1 }
for _, size in ipairs({ 2, 4, 16 }) do
  local larger = {}
  for one = 0, size * size - 1 do
    local low = one % size
    local high = (one - low) / size
    for other = 0, size * size - 1 do
      local below = other % size
      larger[one * size * size + other] = smaller[high * size + (other - below) / size] * size
        + smaller[low * size + below]
    end
  end
  smaller = larger
end
local ands = smaller

-- An argument as a number from 0 up to 2^32.
local function unsigned(value, place, name)
  if type(value) ~= "number" then
    local number = type(value) == "string" and tonumber(value)
    if not number then
      local kind = value == nil and "no value" or type(value)
      local message = " (number expected, got " .. kind .. ")"
      error("bad argument #" .. place .. " to '" .. name .. "'" .. message, 3)
    end
    value = number
  end
  if value % 1 ~= 0 then
    value = (value + ROUNDING) - ROUNDING
  end
  return value % WHOLE
end

local function signed(value)
  return value >= SIGN and value - WHOLE or value
end

local function band(one, other)
  local a0, b0 = one % 256, other % 256
  one, other = (one - a0) / 256, (other - b0) / 256
  local a1, b1 = one % 256, other % 256
  one, other = (one - a1) / 256, (other - b1) / 256
  local a2, b2 = one % 256, other % 256
  return ands[a0 * 256 + b0] + 256 * ands[a1 * 256 + b1] + 65536 * ands[a2 * 256 + b2]
    + 16777216 * ands[(one - a2) + (other - b2) / 256]
end

local bit = {}

function bit.tobit(value)
  return signed(unsigned(value, 1, "tobit"))
end

function bit.bnot(value)
  return signed(WHOLE - 1 - unsigned(value, 1, "bnot"))
end

function bit.band(value, ...)
  local found = unsigned(value, 1, "band")
  for at = 1, select("#", ...) do
    found = band(found, unsigned((select(at, ...)), at + 1, "band"))
  end
  return signed(found)
end

function bit.bor(value, ...)
  local found = unsigned(value, 1, "bor")
  for at = 1, select("#", ...) do
    local other = unsigned((select(at, ...)), at + 1, "bor")
    found = found + other - band(found, other)
  end
  return signed(found)
end

function bit.bxor(value, ...)
  local found = unsigned(value, 1, "bxor")
  for at = 1, select("#", ...) do
    local other = unsigned((select(at, ...)), at + 1, "bxor")
    found = found + other - 2 * band(found, other)
  end
  return signed(found)
end

function bit.lshift(value, count)
  return signed(unsigned(value, 1, "lshift") * 2 ^ (unsigned(count, 2, "lshift") % 32) % WHOLE)
end

function bit.rshift(value, count)
  return signed(floor(unsigned(value, 1, "rshift") / 2 ^ (unsigned(count, 2, "rshift") % 32)))
end

function bit.arshift(value, count)
  return floor(signed(unsigned(value, 1, "arshift")) / 2 ^ (unsigned(count, 2, "arshift") % 32))
end

local function rotated(value, count)
  local shifted = value * 2 ^ count
  local low = shifted % WHOLE
  return signed(low + (shifted - low) / WHOLE)
end

function bit.rol(value, count)
  return rotated(unsigned(value, 1, "rol"), unsigned(count, 2, "rol") % 32)
end

function bit.ror(value, count)
  return rotated(unsigned(value, 1, "ror"), (32 - unsigned(count, 2, "ror") % 32) % 32)
end

function bit.bswap(value)
  value = unsigned(value, 1, "bswap")
  local swapped = 0
  for _ = 1, 4 do
    local low = value % 256
    swapped = swapped * 256 + low
    value = (value - low) / 256
  end
  return signed(swapped)
end

function bit.tohex(value, digits)
  value = unsigned(value, 1, "tohex")
  digits = digits == nil and 8 or signed(unsigned(digits, 2, "tohex"))
  local pattern = "%08x"
  if digits < 0 then
    digits, pattern = -digits, "%08X"
  end
  if digits >= 8 then
    return format(pattern, value)
  elseif digits == 0 then
    return ""
  end
  return format(pattern, value):sub(-digits)
end

return { functions = bit }
