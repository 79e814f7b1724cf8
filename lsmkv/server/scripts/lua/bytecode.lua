-- The most named parameters of a function that also takes "...", among those of a chunk.
--
-- When such a function is called with fewer arguments, Lua 5.1 writes as many values past the space
-- that it has checked (CVE-2014-5461).  Nothing but bytecode has the number: lundump.c has its
-- layout.

local byte, dump = string.byte, string.dump

local code, at, size_of_int, size_of_size, size_of_number, big_endian

local function read(size)
  local value = 0
  for place = 0, size - 1 do
    local one = byte(code, at + (big_endian and place or size - 1 - place))
    value = value * 256 + one
  end
  at = at + size
  return value
end

local function skip_string()
  local size = read(size_of_size)
  at = at + size
end

local function skip_array(size)
  local count = read(size_of_int)
  at = at + count * size
end

local function of_function()
  skip_string()
  at = at + 2 * size_of_int + 1
  local parameters, takes_more = byte(code, at, at + 1)
  local most = takes_more > 0 and parameters or 0
  at = at + 3
  skip_array(4)  -- instructions
  for _ = 1, read(size_of_int) do
    local kind = read(1)
    if kind == 1 then
      at = at + 1
    elseif kind == 3 then
      at = at + size_of_number
    elseif kind == 4 then
      skip_string()
    end
  end
  for _ = 1, read(size_of_int) do
    local found = of_function()
    most = found > most and found or most
  end
  skip_array(size_of_int)  -- lines
  for _ = 1, read(size_of_int) do
    skip_string()
    at = at + 2 * size_of_int
  end
  for _ = 1, read(size_of_int) do
    skip_string()
  end
  return most
end

return function(chunk)
  code, at = dump(chunk), 13
  big_endian = byte(code, 7) == 0
  size_of_int, size_of_size = byte(code, 8, 9)
  size_of_number = byte(code, 11)
  local most = of_function()
  code = nil
  return most
end
