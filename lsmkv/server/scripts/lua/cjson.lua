-- The library cjson: JSON as Redis' scripts read and write it.
--
-- Redis has lua-cjson 2.1.0.  A text is decoded token by token; a decoder's errors name the token
-- and the place of it.  Numbers may also be hexadecimal, infinite or not a number when they are
-- decoded.  / and DEL are escaped when a text is encoded.  The settings that a script makes are its
-- own: reset() undoes them.

local byte, char, find, format, gsub, lower, match, sub =
  string.byte, string.char, string.find, string.format, string.gsub, string.lower, string.match,
  string.sub
local concat, error, floor, next, pairs, pcall, rawget, select, tonumber, tostring, type =
  table.concat, error, math.floor, next, pairs, pcall, rawget, select, tonumber, tostring, type

local null = newproxy(true)
getmetatable(null).__tostring = function() return "userdata: (nil)" end
getmetatable(null).__metatable = false

local DEFAULTS = {
  convert = false, ratio = 2, safe = 10,
  encode_depth = 1000, decode_depth = 1000,
  keep_buffer = true, precision = 14,
  encode_invalid = false, decode_invalid = true,
}

-- Encoding

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["/"] = "\\/", ["\b"] = "\\b", ["\t"] = "\\t",
  ["\n"] = "\\n", ["\f"] = "\\f", ["\r"] = "\\r", ["\127"] = "\\u007f" }
for code = 0, 31 do
  local one = char(code)
  ESCAPES[one] = ESCAPES[one] or format("\\u%04x", code)
end

local function quoted(value)
  if find(value, '[%c"\\/\127]') then
    value = gsub(value, '[%z\1-\31"\\/\127]', ESCAPES)
  end
  return '"' .. value .. '"'
end

local function number_text(value, settings)
  if value ~= value or value == 1 / 0 or value == -1 / 0 then
    if settings.encode_invalid == false then
      error("Cannot serialise number: must not be NaN or Inf", 0)
    elseif settings.encode_invalid == "null" then
      return "null"
    end
    return value ~= value and "nan" or value > 0 and "inf" or "-inf"
  end
  return format("%." .. settings.precision .. "g", value)
end

-- The length of a table that is an array; -1 of any other.
local function length_of(value, settings)
  local most, count = 0, 0
  for key in next, value do
    if type(key) ~= "number" or key < 1 or key % 1 ~= 0 then
      return -1
    end
    if key > most then
      most = key
    end
    count = count + 1
  end
  if settings.ratio > 0 and most > count * settings.ratio and most > settings.safe then
    if not settings.convert then
      error("Cannot serialise table: excessively sparse array", 0)
    end
    return -1
  end
  return most
end

local append

local function append_table(out, value, settings, depth)
  if depth > settings.encode_depth then
    error("Cannot serialise, excessive nesting (" .. depth .. ")", 0)
  end
  local length = length_of(value, settings)
  if length > 0 then
    out[#out + 1] = "["
    for at = 1, length do
      if at > 1 then
        out[#out + 1] = ","
      end
      append(out, rawget(value, at), settings, depth)
    end
    out[#out + 1] = "]"
    return
  end
  out[#out + 1] = "{"
  local comma = ""
  for key, one in next, value do
    local kind = type(key)
    if kind == "string" then
      out[#out + 1] = comma .. quoted(key) .. ":"
    elseif kind == "number" then
      out[#out + 1] = comma .. '"' .. number_text(key, settings) .. '":'
    else
      error("Cannot serialise " .. kind .. ": table key must be a number or string", 0)
    end
    comma = ","
    append(out, one, settings, depth)
  end
  out[#out + 1] = "}"
end

function append(out, value, settings, depth)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = quoted(value)
  elseif kind == "number" then
    out[#out + 1] = number_text(value, settings)
  elseif kind == "table" then
    append_table(out, value, settings, depth + 1)
  elseif kind == "boolean" then
    out[#out + 1] = value and "true" or "false"
  elseif kind == "nil" or value == null then
    out[#out + 1] = "null"
  else
    error("Cannot serialise " .. kind .. ": type not supported", 0)
  end
end

local function encoded(value, settings)
  local out = {}
  append(out, value, settings, 0)
  return concat(out)
end

-- Decoding.  A token is its kind, its value, and where it and what follows it begin.

local MARKS = { ["{"] = "T_OBJ_BEGIN", ["}"] = "T_OBJ_END", ["["] = "T_ARR_BEGIN",
  ["]"] = "T_ARR_END", [","] = "T_COMMA", [":"] = "T_COLON" }
local UNESCAPED = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n",
  r = "\r", t = "\t" }
local WORDS = { t = { "true", "T_BOOLEAN", true }, f = { "false", "T_BOOLEAN", false },
  n = { "null", "T_NULL", null } }

local function utf8(code)
  if code < 0x80 then
    return char(code)
  elseif code < 0x800 then
    return char(0xC0 + floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return char(0xE0 + floor(code / 4096), 0x80 + floor(code / 64) % 64, 0x80 + code % 64)
  end
  return char(0xF0 + floor(code / 262144), 0x80 + floor(code / 4096) % 64,
    0x80 + floor(code / 64) % 64, 0x80 + code % 64)
end

-- The character of \uXXXX at a place, which may be one of two, and where it ends.
local function unicode(text, at)
  local digits = match(text, "^\\u(%x%x%x%x)", at)
  if not digits then
    return nil
  end
  local code = tonumber(digits, 16)
  if code < 0xD800 or code > 0xDFFF then
    return utf8(code), at + 6
  elseif code >= 0xDC00 then
    return nil
  end
  local rest = match(text, "^\\u([dD][c-fC-F]%x%x)", at + 6)
  if not rest then
    return nil
  end
  return utf8((code - 0xD800) * 1024 + tonumber(rest, 16) - 0xDC00 + 0x10000), at + 12
end

local function string_token(text, start)
  local at, parts = start + 1, nil
  while true do
    local stop = find(text, '["\\%z]', at)
    local mark = stop and byte(text, stop)
    if mark == 34 then
      local part = sub(text, at, stop - 1)
      if parts then
        parts[#parts + 1] = part
        part = concat(parts)
      end
      return "T_STRING", part, start, stop + 1
    elseif mark ~= 92 then
      return "T_ERROR", "unexpected end of string", stop or #text + 1
    end
    parts = parts or {}
    parts[#parts + 1] = sub(text, at, stop - 1)
    local letter = sub(text, stop + 1, stop + 1)
    if letter == "u" then
      local made, behind = unicode(text, stop)
      if not made then
        return "T_ERROR", "invalid unicode escape code", stop
      end
      parts[#parts + 1] = made
      at = behind
    else
      local made = UNESCAPED[letter]
      if not made then
        return "T_ERROR", "invalid escape code", stop
      end
      parts[#parts + 1] = made
      at = stop + 2
    end
  end
end

-- Whether a number is none that JSON allows.
local function is_invalid(text, start)
  local rest = lower(sub(text, start, start + 4))
  if sub(rest, 1, 1) == "+" then
    return true
  end
  rest = gsub(rest, "^%-", "")
  return find(rest, "^0[x%d]") ~= nil or find(rest, "^inf") ~= nil or find(rest, "^nan") ~= nil
end

local function number_token(text, start)
  local sign, at = match(text, "^([+-]?)()", start)
  local value, behind
  local digits = match(text, "^0[xX]%x+", at)
  if digits then
    value, behind = tonumber(digits), at + #digits
  else
    local whole, fraction
    whole, fraction = match(text, "^%d+", at), nil
    fraction = match(text, "^%.%d*", at + #(whole or ""))
    if whole or (fraction and #fraction > 1) then
      behind = at + #(whole or "") + #(fraction or "")
      local exponent = match(text, "^[eE][+-]?%d+", behind)
      behind = behind + #(exponent or "")
      value = tonumber(sub(text, at, behind - 1))
    else
      local word = lower(match(text, "^%a*", at))
      if find(word, "^infinity") then
        value, behind = 1 / 0, at + 8
      elseif find(word, "^inf") then
        value, behind = 1 / 0, at + 3
      elseif find(word, "^nan") then
        value, behind = 0 / 0, at + 3
      end
    end
  end
  if not value then
    return "T_ERROR", "invalid number", start
  end
  return "T_NUMBER", sign == "-" and -value or value, start, behind
end

local function next_token(text, at, settings)
  at = find(text, "[^ \t\n\r]", at)
  if not at then
    return "T_END", nil, #text + 1
  end
  local first = sub(text, at, at)
  local mark = MARKS[first]
  if mark then
    return mark, nil, at, at + 1
  elseif first == '"' then
    return string_token(text, at)
  elseif find(first, "[%d-]") then
    if not settings.decode_invalid and is_invalid(text, at) then
      return "T_ERROR", "invalid number", at
    end
    return number_token(text, at)
  end
  local word = WORDS[first]
  if word and sub(text, at, at + #word[1] - 1) == word[1] then
    return word[2], word[3], at, at + #word[1]
  elseif settings.decode_invalid and is_invalid(text, at) then
    return number_token(text, at)
  end
  return "T_ERROR", "invalid token", at
end

local function unexpected(expected, kind, value, at)
  local found = kind == "T_ERROR" and value or kind
  error("Expected " .. expected .. " but found " .. found .. " at character " .. at, 0)
end

local decode_value

local function check_depth(depth, at, settings)
  if depth > settings.decode_depth then
    error("Found too many nested data structures (" .. depth .. ") at character " .. at, 0)
  end
end

local function decode_object(text, at, settings, depth)
  check_depth(depth, at - 1, settings)
  local made = {}
  local kind, value, start, behind = next_token(text, at, settings)
  if kind == "T_OBJ_END" then
    return made, behind
  end
  while true do
    if kind ~= "T_STRING" then
      unexpected("object key string", kind, value, start)
    end
    local key = value
    kind, value, start, behind = next_token(text, behind, settings)
    if kind ~= "T_COLON" then
      unexpected("colon", kind, value, start)
    end
    kind, value, start, behind = next_token(text, behind, settings)
    made[key], behind = decode_value(text, kind, value, start, behind, settings, depth)
    kind, value, start, behind = next_token(text, behind, settings)
    if kind == "T_OBJ_END" then
      return made, behind
    elseif kind ~= "T_COMMA" then
      unexpected("comma or object end", kind, value, start)
    end
    kind, value, start, behind = next_token(text, behind, settings)
  end
end

local function decode_array(text, at, settings, depth)
  check_depth(depth, at - 1, settings)
  local made, count = {}, 0
  local kind, value, start, behind = next_token(text, at, settings)
  if kind == "T_ARR_END" then
    return made, behind
  end
  while true do
    count = count + 1
    made[count], behind = decode_value(text, kind, value, start, behind, settings, depth)
    kind, value, start, behind = next_token(text, behind, settings)
    if kind == "T_ARR_END" then
      return made, behind
    elseif kind ~= "T_COMMA" then
      unexpected("comma or array end", kind, value, start)
    end
    kind, value, start, behind = next_token(text, behind, settings)
  end
end

function decode_value(text, kind, value, start, behind, settings, depth)
  if kind == "T_STRING" or kind == "T_NUMBER" or kind == "T_BOOLEAN" or kind == "T_NULL" then
    return value, behind
  elseif kind == "T_OBJ_BEGIN" then
    return decode_object(text, behind, settings, depth + 1)
  elseif kind == "T_ARR_BEGIN" then
    return decode_array(text, behind, settings, depth + 1)
  end
  unexpected("value", kind, value, start)
end

local function decoded(text, settings)
  if #text >= 2 and (byte(text, 1) == 0 or byte(text, 2) == 0) then
    error("JSON parser does not support UTF-16 or UTF-32", 0)
  end
  local kind, value, start, behind = next_token(text, 1, settings)
  local made
  made, behind = decode_value(text, kind, value, start, behind, settings, 0)
  kind, value, start = next_token(text, behind, settings)
  if kind ~= "T_END" then
    unexpected("the end", kind, value, start)
  end
  return made
end

-- The module

local function only(name, count)
  if count ~= 1 then
    error("bad argument #1 to '" .. name .. "' (expected 1 argument)", 3)
  end
end

local function result(ok, value)
  if not ok then
    error(value, value == "not enough memory" and 0 or 3)
  end
  return value
end

local function whole(value, place, name, least, most)
  local number = tonumber(value)
  if not number then
    local kind = value == nil and "nil" or type(value)
    error("bad argument #" .. place .. " to '" .. name .. "' (number expected, got " .. kind .. ")", 3)
  end
  number = number < 0 and -floor(-number) or floor(number)
  if number < least or number > most then
    error("bad argument #" .. place .. " to '" .. name .. "' (expected integer between " .. least
      .. " and " .. most .. ")", 3)
  end
  return number
end

local function flag(value, place, name)
  if type(value) == "boolean" then
    return value
  elseif value == "on" or value == "off" then
    return value == "on"
  elseif type(value) ~= "string" then
    error("bad argument #" .. place .. " to '" .. name .. "' (string expected, got " .. type(value)
      .. ")", 3)
  end
  error("bad argument #" .. place .. " to '" .. name .. "' (invalid option '" .. value .. "')", 3)
end

local MOST = 2147483647

local function module()
  local settings = {}
  local cjson = { null = null, _NAME = "cjson", _VERSION = "2.1.0" }

  local function reset()
    for name, value in pairs(DEFAULTS) do
      settings[name] = value
    end
  end

  reset()
  local changed = false

  function cjson.encode(...)
    only("encode", select("#", ...))
    return result(pcall(encoded, (...), settings))
  end

  function cjson.decode(...)
    only("decode", select("#", ...))
    local text = ...
    if type(text) ~= "string" then
      if type(text) ~= "number" then
        error("bad argument #1 to 'decode' (string expected, got " .. type(text) .. ")", 2)
      end
      text = tostring(text)
    end
    return result(pcall(decoded, text, settings))
  end

  local function number_setting(name, field, least, most)
    cjson[name] = function(value)
      if value ~= nil then
        settings[field] = whole(value, 1, name, least, most)
        changed = true
      end
      return settings[field]
    end
  end

  number_setting("encode_max_depth", "encode_depth", 1, MOST)
  number_setting("decode_max_depth", "decode_depth", 1, MOST)
  number_setting("encode_number_precision", "precision", 1, 14)

  local function flag_setting(name, field, also)
    cjson[name] = function(value)
      if value ~= nil then
        settings[field] = value == also and value or flag(value, 1, name)
        changed = true
      end
      return settings[field]
    end
  end

  flag_setting("encode_keep_buffer", "keep_buffer")
  flag_setting("encode_invalid_numbers", "encode_invalid", "null")
  flag_setting("decode_invalid_numbers", "decode_invalid")

  function cjson.encode_sparse_array(convert, ratio, safe)
    local name = "encode_sparse_array"
    changed = true  -- also if a later argument is wrong
    if convert ~= nil then
      settings.convert = flag(convert, 1, name)
    end
    if ratio ~= nil then
      settings.ratio = whole(ratio, 2, name, 0, MOST)
    end
    if safe ~= nil then
      settings.safe = whole(safe, 3, name, 0, MOST)
    end
    return settings.convert, settings.ratio, settings.safe
  end

  function cjson.new()
    return (module())
  end

  return cjson, function()
    if changed then
      reset()
      changed = false
    end
  end
end

local cjson, reset = module()
return { functions = cjson, reset = reset }
