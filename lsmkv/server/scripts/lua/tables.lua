-- unpack, insert and sort with bounds, and a sort that can be ended.

local look, is_protected, readonly = ...
local insert, sort = table.insert, table.sort
local error, floor, next, rawget, rawset, select, tonumber, type, unpack =
  error, math.floor, next, rawget, rawset, select, tonumber, type, unpack

local MOST_RESULTS = 8000   -- more than the stack of a function of C has room for
local LEAST_PLACE = -1000   -- where insert may begin to move entries
local CHEAP = 4e6           -- steps of C for one sort: 20 ms

local function check_table(value, name)
  if type(value) ~= "table" then
    error("bad argument #1 to '" .. name .. "' (table expected, got " .. type(value) .. ")", 3)
  end
end

-- A number as C's int.  One that is out of its range becomes the nearest.
local function integer(value, place, name)
  local number = (type(value) == "number" or type(value) == "string") and tonumber(value)
  if not number then
    error("bad argument #" .. place .. " to '" .. name .. "' (number expected, got " .. type(value)
      .. ")", 3)
  end
  if number ~= number then
    return 0
  end
  number = number < 0 and -floor(-number) or floor(number)
  return number < -2147483648 and -2147483648 or number > 2147483647 and 2147483647 or number
end

local bounded = {}

function bounded.unpack(list, first, last)
  check_table(list, "unpack")
  if first == nil and last == nil then
    return unpack(list)
  end
  first = first == nil and 1 or integer(first, 2, "unpack")
  last = last == nil and #list or integer(last, 3, "unpack")
  if last - first >= MOST_RESULTS then
    error("too many results to unpack", 2)
  end
  return unpack(list, first, last)
end

function bounded.insert(list, ...)
  if is_protected[list] then
    error(readonly, 0)
  end
  check_table(list, "insert")
  local count = select("#", ...)
  if count == 1 then
    rawset(list, #list + 1, (...))
  elseif count == 2 then
    local place, value = ...
    place = integer(place, 2, "insert")
    if place < LEAST_PLACE or place == 2147483647 then
      error("bad argument #2 to 'insert' (position out of bounds)", 2)
    end
    insert(list, place, value)
  else
    error("wrong number of arguments to 'insert'", 2)
  end
end

-- Quicksort as in ltablib.c, so that the result is the same even where entries are equal.
local function sorted(list, low, high, less)
  local function swap(one, other)
    local kept = rawget(list, one)
    rawset(list, one, rawget(list, other))
    rawset(list, other, kept)
  end
  while low < high do
    if less(rawget(list, high), rawget(list, low)) then
      swap(low, high)
    end
    if high - low == 1 then
      break
    end
    local at = floor((low + high) / 2)
    if less(rawget(list, at), rawget(list, low)) then
      swap(at, low)
    elseif less(rawget(list, high), rawget(list, at)) then
      swap(at, high)
    end
    if high - low == 2 then
      break
    end
    local pivot = rawget(list, at)
    swap(at, high - 1)
    local up, down = low, high - 1
    while true do
      up = up + 1
      while less(rawget(list, up), pivot) do
        if up > high then
          error("invalid order function for sorting", 0)
        end
        up = up + 1
      end
      down = down - 1
      while less(pivot, rawget(list, down)) do
        if down < low then
          error("invalid order function for sorting", 0)
        end
        down = down - 1
      end
      if down < up then
        break
      end
      swap(up, down)
    end
    swap(high - 1, up)
    if up - low < high - up then  -- the smaller part by recursion
      sorted(list, low, up - 1, less)
      low = up + 1
    else
      sorted(list, up + 1, high, less)
      high = up - 1
    end
  end
end

local function smaller(one, other)
  return one < other
end

-- Whether C is done soon, even if the order of the entries is the worst for quicksort.
local function is_cheap(list, count)
  if count * count > CHEAP then
    return false
  end
  local bytes = 0
  for _, value in next, list do
    if type(value) == "string" then
      bytes = bytes + #value
    end
  end
  return count * bytes < 100 * CHEAP
end

function bounded.sort(list, less)
  check_table(list, "sort")
  if less ~= nil and type(less) ~= "function" then
    error("bad argument #2 to 'sort' (function expected, got " .. type(less) .. ")", 2)
  end
  local count = #list
  if is_cheap(list, count) then
    sort(list, less)
  else
    look()
    sorted(list, 1, count, less or smaller)
  end
end

return bounded
