-- Replies of scripts, from Lua to RESP.
--
-- What a script has made is read raw: a metamethod could run commands after the end of the script.

local concat, error, find, format, gsub, next, rawget, sub, type =
  table.concat, error, string.find, string.format, string.gsub, next, rawget, string.sub, type

local DEEPEST = 2000  -- tables in tables
local PART = 8192     -- bytes that C is given at a time

local NOT_AN_INTEGER = "-9223372036854775808"  -- what C makes of them

local function integer(number)
  if number ~= number or number >= 2 ^ 63 or number < -2 ^ 63 then
    return NOT_AN_INTEGER
  end
  return format("%d", number)
end

local function one_line(value)
  if not find(value, "[\r\n]") then
    return value
  end
  local parts = {}
  for at = 1, #value, PART do
    parts[#parts + 1] = gsub(sub(value, at, at + PART - 1), "[\r\n]", " ")
  end
  return concat(parts)
end

local encode

local function encode_table(out, value, resp3, typed, depth)
  local field = rawget(value, "err")
  if type(field) == "string" then
    out[#out + 1] = "-" .. one_line(field) .. "\r\n"
    return
  end
  field = rawget(value, "ok")
  if type(field) == "string" then
    out[#out + 1] = "+" .. one_line(field) .. "\r\n"
    return
  end
  field = rawget(value, "double")
  if type(field) == "number" then
    local digits = field ~= field and "nan" or field == 1 / 0 and "inf" or field == -1 / 0 and "-inf"
      or format("%.17g", field)
    out[#out + 1] = resp3 and "," .. digits .. "\r\n" or "$" .. #digits .. "\r\n" .. digits .. "\r\n"
    return
  end
  field = rawget(value, "map")
  if type(field) == "table" then
    local head, count = #out + 1, 0
    out[head] = ""
    for key, one in next, field do
      encode(out, key, resp3, typed, depth + 1)
      encode(out, one, resp3, typed, depth + 1)
      count = count + 1
    end
    out[head] = resp3 and "%" .. count .. "\r\n" or "*" .. 2 * count .. "\r\n"
    return
  end
  field = rawget(value, "set")
  if type(field) == "table" then
    local head, count = #out + 1, 0
    out[head] = ""
    for key in next, field do
      encode(out, key, resp3, typed, depth + 1)
      count = count + 1
    end
    out[head] = (resp3 and "~" or "*") .. count .. "\r\n"
    return
  end
  field = rawget(value, "big_number")
  if type(field) == "string" then
    local digits = one_line(field)
    out[#out + 1] = resp3 and "(" .. digits .. "\r\n" or "$" .. #digits .. "\r\n" .. digits .. "\r\n"
    return
  end
  field = rawget(value, "verbatim_string")
  if type(field) == "table" then
    local words, kind = rawget(field, "string"), rawget(field, "format")
    if type(words) == "string" and type(kind) == "string" then
      if resp3 then
        words = sub(kind .. "   ", 1, 3) .. ":" .. words
      end
      out[#out + 1] = (resp3 and "=" or "$") .. #words .. "\r\n" .. words .. "\r\n"
      return
    end
  end
  local head, count = #out + 1, 0
  out[head] = ""
  while true do
    local one = rawget(value, count + 1)
    if one == nil then
      break
    end
    count = count + 1
    encode(out, one, resp3, typed, depth + 1)
  end
  out[head] = "*" .. count .. "\r\n"
end

function encode(out, value, resp3, typed, depth)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = "$" .. #value .. "\r\n" .. value .. "\r\n"
  elseif kind == "number" then
    out[#out + 1] = ":" .. integer(value) .. "\r\n"
  elseif kind == "table" then
    if depth > DEEPEST then
      error("reached lua stack limit", 0)
    end
    encode_table(out, value, resp3, typed, depth)
  elseif kind == "boolean" and typed and resp3 then
    out[#out + 1] = value and "#t\r\n" or "#f\r\n"
  elseif kind == "boolean" and (value or typed) then
    out[#out + 1] = value and ":1\r\n" or ":0\r\n"
  else
    out[#out + 1] = resp3 and "_\r\n" or "$-1\r\n"
  end
end

-- The whole reply as bytes of RESP.  If it is typed, the script asked for the types of RESP3.
return function(value, resp3, typed)
  local out = {}
  encode(out, value, resp3, typed, 1)
  return concat(out)
end
