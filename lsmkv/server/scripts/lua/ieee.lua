-- Floating point numbers as bytes of IEEE 754, the highest byte first.

local byte, char = string.byte, string.char
local concat, floor, frexp, ldexp = table.concat, math.floor, math.frexp, math.ldexp

-- Bits of the exponent's bias and of the fraction, of 4 and of 8 bytes.
local FLOAT = { size = 4, bias = 127, fraction = 23 }
local DOUBLE = { size = 8, bias = 1023, fraction = 52 }

-- A whole number, rounded half to even.
local function rounded(value)
  local whole = floor(value)
  local rest = value - whole
  if rest > 0.5 or (rest == 0.5 and whole % 2 == 1) then
    return whole + 1
  end
  return whole
end

local function pack(value, kind)
  local sign, exponent, fraction = 0, 0, 0
  local most = 2 * kind.bias + 1
  if value ~= value then
    sign, exponent, fraction = 1, most, 2 ^ (kind.fraction - 1)
  else
    if value < 0 or (value == 0 and 1 / value < 0) then
      sign, value = 1, -value
    end
    if value == 1 / 0 then
      exponent = most
    elseif value > 0 then
      local mantissa, power = frexp(value)
      exponent = power + kind.bias - 1
      if exponent < 1 then
        fraction = rounded(ldexp(value, kind.bias - 1 + kind.fraction))
        exponent = 0
      else
        fraction = rounded((mantissa * 2 - 1) * 2 ^ kind.fraction)
      end
      if fraction == 2 ^ kind.fraction then
        fraction, exponent = 0, exponent + 1
      end
      if exponent >= most then
        exponent, fraction = most, 0
      end
    end
  end
  local bytes = {}
  local bits = kind.fraction
  for at = kind.size, 1, -1 do
    if bits >= 8 then
      local low = fraction % 256
      bytes[at] = char(low)
      fraction = (fraction - low) / 256
      bits = bits - 8
    elseif bits > 0 then
      local above = exponent % 2 ^ (8 - bits)
      bytes[at] = char(above * 2 ^ bits + fraction)
      exponent = (exponent - above) / 2 ^ (8 - bits)
      bits = 0
    else
      bytes[at] = char(sign * 128 + exponent)
    end
  end
  return concat(bytes)
end

local function unpack(text, kind)
  local first, second = byte(text, 1, 2)
  local sign = first >= 128 and -1 or 1
  local below = 2 ^ (kind.fraction % 8)  -- the second byte has bits of both
  local exponent = (first % 128) * 256 / below + floor(second / below)
  local fraction = second % below
  for at = 3, kind.size do
    fraction = fraction * 256 + byte(text, at)
  end
  if exponent == 2 * kind.bias + 1 then
    return fraction == 0 and sign / 0 or 0 / 0
  elseif exponent == 0 then
    return sign * ldexp(fraction, 1 - kind.bias - kind.fraction)
  end
  return sign * ldexp(1 + fraction / 2 ^ kind.fraction, exponent - kind.bias)
end

return {
  pack_float = function(value) return pack(value, FLOAT) end,
  pack_double = function(value) return pack(value, DOUBLE) end,
  unpack_float = function(text) return unpack(text, FLOAT) end,
  unpack_double = function(text) return unpack(text, DOUBLE) end,
}
