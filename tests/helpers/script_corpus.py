"""Scripts that both servers run, and whose replies are compared."""

# ruff: noqa: E501 - a script is one line

from __future__ import annotations

PLAIN = r"""
return redis.call()
return redis.call({})
return redis.call('get', nil)
return redis.call('get', true)
return redis.call('nosuch')
return redis.call('get')
return redis.call('multi')
return redis.call('config', 'foo')
return redis.call('config', 'get', 'x')
return redis.call('object')
return redis.call('object', 'foo')
return redis.call('blpop', 'none', 0)
return redis.call('blmpop', 0, 1, 'none', 'LEFT')
return redis.call('bzmpop', 0, 1, 'none', 'MIN')
return redis.call('subscribe', 'x')
return redis.call('XREAD', 'BLOCK', '10', 'STREAMS', 'st', '0')
return redis.call('xreadgroup', 'GROUP', 'g', 'c', 'BLOCK', '10', 'STREAMS', 'st', '>')
redis.call('del', 'st') redis.call('xadd', 'st', '1-1', 'f', 'v') return redis.call('xread', 'STREAMS', 'st', '0')
redis.call('del', 'st') redis.call('xadd', 'st', '1-1', 'f', 'v') redis.setresp(3) return redis.call('xread', 'STREAMS', 'st', '0')
redis.call('del', 'st') redis.call('xgroup', 'create', 'st', 'g', '0', 'MKSTREAM') redis.call('xadd', 'st', '2-1', 'f', 'v') return redis.call('xreadgroup', 'GROUP', 'g', 'c', 'STREAMS', 'st', '>')
return redis.call('xinfo', 'groups', 'st')
return redis.call('eval', 'return 1', 0)
return redis.call('SeT', 'k', 1)
return redis.call(5)
return redis.pcall('nosuch')
return redis.pcall()
return redis.pcall('set')
local e = redis.pcall('nosuch') return {type(e), e.err, tostring(e.ok)}
local ok, e = pcall(redis.call, 'nosuch') return {tostring(ok), type(e), tostring(e)}
local ok, e = pcall(function() return redis.call('incr', 'a', 2, 3) end) return {type(e), e}
local ok, e = pcall(error, {err='foo'}) return {tostring(ok), type(e), tostring(e)}
local ok, e = pcall(error, {}) return {tostring(ok), type(e)}
local ok, e = pcall(error) return {tostring(ok), type(e)}
local ok, e = pcall(error, 'text', 0) return {tostring(ok), e}
local ok, e = pcall(error, 5) return {tostring(ok), type(e), tostring(e)}
local ok, e = xpcall(function() return redis.call('x') end, type) return {tostring(ok), e}
return {pcall(function() return 1, 2, 3 end)}
x = 1
local x = y
_G.x = 1
return _G.x
string.x = 1
string.format = nil
KEYS = {}
redis.call = nil
rawset(_G, 'x', 1)
rawset(string, 'x', 1)
setmetatable(_G, {})
setmetatable(string, {})
getmetatable('').__index = 1
getmetatable('').x = 1
return tostring(getmetatable(string))
return {rawget(_G, 'tostring') == tostring, rawget(string, 'format') == string.format}
return {tostring(rawget(_G, 'nosuch')), type(_G), type(string), _G == _G._G, _VERSION}
error('boom')
error('boom', 0)
error('boom', 2)
error({err='My thing'})
error()
error(5)
assert(false)
assert(false, 'message')
assert(nil)
return assert(5)
return {err='My thing'}
return {err='-My thing'}
return {err='thing'}
return {err=5}
return {err='a\r\nb'}
return {ok='fine'}
return {ok='a\nb'}
return {ok=5}
return redis.error_reply('My thing')
return redis.error_reply('thing')
return redis.error_reply('-thing')
return redis.error_reply('-My thing')
return redis.error_reply('My thing\r\n')
return redis.error_reply()
return redis.error_reply({})
return redis.error_reply('a', 'b')
return redis.status_reply('My thing')
return redis.status_reply(5)
return redis.status_reply()
return redis.sha1hex()
return redis.sha1hex('')
return redis.sha1hex(5)
return redis.sha1hex('a', 'b')
return redis.log()
return redis.log(9, 'x')
return redis.log(-1, 'x')
return redis.log('x', 'x')
return redis.log(redis.LOG_DEBUG, 'x', 'y', 5)
return redis.setresp(5)
return redis.setresp()
return redis.setresp('x')
return redis.setresp(3)
return redis.replicate_commands()
return redis.set_repl(9)
return redis.set_repl(redis.REPL_ALL)
return redis.set_repl()
return redis.breakpoint()
return redis.debug('x')
return redis.acl_check_cmd('set', 'x', 'y')
return redis.acl_check_cmd('nosuch')
return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM}
return {redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING}
return {redis.REPL_ALL, redis.REPL_AOF, redis.REPL_NONE, redis.REPL_REPLICA, redis.REPL_SLAVE}
return syntax error
return 'unfinished
return {1, 2, nil, 4}
return {1.9, -1.9, 'a', true, false, {ok='fine'}, {err='bad'}, {}, {{}}}
return {nil, 1}
return {a=1, 'x'}
return 1e300
return -1e300
return 0/0
return 1/0
return -0.5
return 2^53
return 2^63
return -2^63
return function() end
return coroutine.create(function() end)
return cjson.null
return {function() end, 1}
return {cjson.null, 1}
return true
return false
return nil
return
return 'a', 'b'
return 'a\0b'
local f = 1 return f.x.y
local f = {} return f.x.y
local f = {} f()
return 1 + {}
return {} .. 'x'
return {} < {}
return 1 < 'x'
return #5
return string.rep()
local s = ('x'):rep({}) return s
return string.rep('ab', 3)
return string.rep('', 1000000000)
return string.rep('x', -1)
return string.rep('x', '3')
return string.find('a', '[')
return string.gsub('hello', 'l', 'L')
return {string.gsub('hello world', '%w+', '%0 %0', 1)}
return {string.find('hello', 'l')}
return {string.match('key=value', '(%w+)=(%w+)')}
local t = {} for w in string.gmatch('one two', '%a+') do t[#t+1] = w end return t
local t = {} for w in ('one two'):gmatch('%a+') do t[#t+1] = w end return t
return {('x'):upper(), ('ab'):len(), ('ab'):byte(1, -1), ('abc'):sub(2)}
return string.format('%5.2f %d %s %q %x', 3.14159, 42, 'x', 'a"b', 255)
return string.format('%d', 3.7)
return string.format('%y', 1)
return string.char(104, 105)
return string.reverse('abc')
return {load}
return {loadstring(string.dump(function() end))}
return loadstring('return 5')()
return {loadstring('return syntax error')}
return loadstring('x = 1')()
return load(function() return nil end)()
local n = 0 return load(function() n = n + 1 return ({'return', ' 7'})[n] end)()
return {load(function() return {} end)}
return loadstring({})
return {tostring(nil), tostring(true), tostring(1.5), tostring(1e15), tostring(1e14), tostring(2^63)}
return {tonumber('0x10'), tonumber('10', 2), tonumber('zz', 36), tostring(tonumber('x')), tonumber(' 5 ')}
return {type(1), type('x'), type({}), type(nil), type(type), type(cjson.null)}
return {select('#', 1, nil, nil), select(2, 'a', 'b', 'c')}
return {unpack({1, 2, 3}, 2)}
return select(0)
return {math.floor(1.5), math.ceil(1.5), math.abs(-1), math.max(1, 3, 2), math.min(3, 1), math.fmod(7, 3)}
return {tostring(math.pi), tostring(math.huge), tostring(-math.huge), tostring(math.sqrt(2))}
math.randomseed(7) return {math.random(100), math.random(5, 9), tostring(math.random())}
math.randomseed(0) return {math.random(100), math.random(5, 9), tostring(math.random())}
math.randomseed(-5) return {math.random(100), math.random(5, 9), tostring(math.random())}
return math.random(0)
return math.random(5, 1)
return math.random(1, 2, 3)
return math.random('x')
return math.random({})
local t = {3, 1, 2} table.sort(t) return t
local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return t
table.sort({3, 1, 'x'})
local t = {1} table.insert(t, 2) table.insert(t, 1, 0) return t
local t = {1, 2, 3} return {table.remove(t), table.remove(t, 1), #t}
return table.concat({1, 2, 3}, ', ')
return table.concat({1, {}, 3})
return {table.getn({1, 2}), table.maxn({1, 2, [7]=1})}
return {table.foreach({5, 6}, function(k, v) if v == 6 then return k end end)}
table.insert(nil, 1)
table.insert({}, 1, 2, 3)
local s = 0 for k, v in pairs({1, 2, 3}) do s = s + v end return s
local s = 0 for k, v in ipairs({1, 2, nil, 3}) do s = s + v end return s
local n = 0 for k in pairs(redis) do n = n + 1 end return n
local n = 0 for k in pairs(string) do n = n + 1 end return n
local n = 0 for k in pairs(math) do n = n + 1 end return n
local n = 0 for k in pairs(table) do n = n + 1 end return n
local t = {} for k in pairs(cjson) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(bit) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(cmsgpack) do t[#t + 1] = k end table.sort(t) return t
local t = {} for k in pairs(struct) do t[#t + 1] = k end table.sort(t) return t
return next({})
return {next({5})}
return pairs(nil)
return ipairs()
local t = setmetatable({}, {__index=function(t, k) return k .. '!' end}) return t.x
local t = setmetatable({}, {__call=function(self, x) return x + 1 end}) return t(1)
local t = setmetatable({}, {__tostring=function() return 'T' end}) return tostring(t)
local t = setmetatable({}, {__metatable='locked'}) return getmetatable(t)
setmetatable(1, {})
return coroutine.yield(1)
local c = coroutine.create(function(a) local b = coroutine.yield(a + 1) return b * 2 end) return {select(2, coroutine.resume(c, 1)), select(2, coroutine.resume(c, 5)), coroutine.status(c)}
local c = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) return {c(), c(), c()}
local c = coroutine.wrap(function() error('inside') end) c()
local c = coroutine.wrap(function() return redis.call('set', 'fromco', '1') end) return c()
local c = coroutine.create(function() error({err='inside it'}) end) local ok, e = coroutine.resume(c) return {tostring(ok), type(e)}
return coroutine.resume(5)
return {coroutine.running()}
return dofile
return print
return require
return os
return io
return debug
return package
return getfenv
return setfenv
return newproxy
return module
return collectgarbage('count') > 0
return {collectgarbage('step'), collectgarbage()}
return gcinfo() > 0
return redis.call('set', 'n', 1e17)
return {redis.call('set', 'n', 1e17), redis.call('get', 'n')}
return {redis.call('set', 'n', -0.0), redis.call('get', 'n')}
return {redis.call('set', 'n', 3.1), redis.call('get', 'n')}
return {redis.call('set', 'n', 1/0), redis.call('get', 'n')}
return {redis.call('set', 'n', 12345678901), redis.call('get', 'n')}
return {redis.call('del', 'none'), redis.call('get', 'none'), redis.call('exists', 'none')}
return redis.call('mget', 'none', 'none2')
return {redis.call('hset', 'h', 'a', 1, 'b', 2), redis.call('hget', 'h', 'a'), redis.call('hlen', 'h')}
redis.call('zadd', 'z', 1, 'a', 2.5, 'b') return redis.call('zrange', 'z', 0, -1, 'withscores')
redis.setresp(3) redis.call('zadd', 'z', 1, 'a', 2.5, 'b') return redis.call('zrange', 'z', 0, -1, 'withscores')
redis.setresp(3) redis.call('hset', 'h', 'a', 1) return redis.call('hgetall', 'h')
redis.setresp(3) redis.call('hset', 'h', 'a', 1) return redis.call('hgetall', 'h').map.a
redis.setresp(3) redis.call('sadd', 't', 'x') return redis.call('smembers', 't')
redis.setresp(3) redis.call('sadd', 't', 'x') return tostring(redis.call('smembers', 't').set.x)
redis.setresp(3) redis.call('zadd', 'z', 2.5, 'b') return redis.call('zscore', 'z', 'b')
redis.setresp(3) redis.call('zadd', 'z', 2.5, 'b') return tostring(redis.call('zscore', 'z', 'b').double)
redis.setresp(3) return type(redis.call('get', 'none'))
redis.setresp(3) return redis.call('get', 'none')
redis.setresp(3) return redis.call('mget', 'none', 'none')
redis.setresp(3) return {true, false}
redis.setresp(3) return true
redis.setresp(3) return false
redis.setresp(3) return {1, {map={a=1}}, {set={x=true}}, {double=1.5}}
return type(redis.call('get', 'none'))
return {double=3.14}
return {double=1/0}
return {double='x'}
return {map={a=1}}
return {map={a={map={b=2}}}}
return {map=5}
return {set={a=true}}
return {big_number='123'}
return {big_number=5}
return {verbatim_string={string='hi', format='txt'}}
return {verbatim_string={string='hi'}}
redis.call('select', 2) redis.call('set', 'in2', 1) return 1
return redis.call('select', 99)
return {redis.call('ping'), redis.call('echo', 'x')}
return redis.call('set', KEYS[1], ARGV[1])
return {KEYS[1], KEYS[2], ARGV[1], ARGV[2], #KEYS, #ARGV}
KEYS[1] = 'x' return {KEYS[1], #KEYS}
KEYS.x = 1 return KEYS.x
local function f(n) if n == 0 then return 'deep' end return f(n - 1) end return f(100000)
local function f(n) return 1 + f(n + 1) end return f(1)
local t = {} for i = 1, 300 do t[i] = i end return redis.call('rpush', 'many', unpack(t))
redis.call('set', 's', 'x') redis.call('lpush', 's', 'y')
redis.call('set', 's', 'x') return redis.pcall('lpush', 's', 'y')
redis.call('set', 's', 'x') local e = redis.pcall('lpush', 's', 'y') error(e)
return redis.call('set', 'a', 1, 'foo')
return redis.call('publish', 'c', 'm')
return redis.call('expire', 'none', 'x')
return bit.tobit(0xffffffff)
return {bit.bnot(0), bit.bnot(0xff), bit.band(0xff, 0x0f0f), bit.band(1), bit.bor(1, 2, 4), bit.bxor(5, 3, 1)}
return {bit.lshift(1, 0), bit.lshift(1, 31), bit.lshift(1, 32), bit.lshift(-1, 4), bit.rshift(-1, 28), bit.arshift(-256, 4)}
return {bit.rol(0x12345678, 12), bit.ror(0x12345678, 12), bit.rol(1, 0), bit.ror(1, 1), bit.bswap(0x12345678)}
return {bit.tohex(1), bit.tohex(-1), bit.tohex(0xff, 2), bit.tohex(0xabc, -3), bit.tohex(1, 0), bit.tohex(1, 20), bit.tohex(1, -20)}
return {bit.tobit(1.5), bit.tobit(2.5), bit.tobit(-1.5), bit.tobit(2^31), bit.tobit(2^32 + 5), bit.tobit('7')}
return bit.band()
return bit.band('x')
return bit.band({})
return bit.lshift(1)
return cjson.encode({1, 2, {a=1}})
return cjson.encode({})
return cjson.encode({{}})
return cjson.encode('a"b\\c/d\b\f\n\r\t\1\127é')
return cjson.encode({1.5, 1e20, 1e-7, 0.1, 123456789012345678, -0.0, 2^53})
return cjson.encode({true, false, cjson.null})
return cjson.encode(nil)
return cjson.encode({[1]=1, [3]=3})
return cjson.encode({[1]=1, [100]=2})
return cjson.encode({[5]=1, x=2}) ~= ''
return cjson.encode({[1.5]='a'})
return cjson.encode({[true]=1})
return cjson.encode(function() end)
return cjson.encode(0/0)
return cjson.encode(1/0)
return cjson.encode()
return cjson.encode(1, 2)
local t = {} local u = t for i = 1, 1100 do u[1] = {} u = u[1] end return cjson.encode(t)
return cjson.decode()
return cjson.decode(5)
return cjson.decode({})
return cjson.decode('[1, 2, {"a": [true, false, null]}]')
return cjson.decode('{"a": {"b": "c"}}').a.b
return cjson.decode('"\\u00e9\\ud83d\\ude00\\n\\/"')
return cjson.decode('"\\ud83d"')
return cjson.decode('"\\uzzzz"')
return cjson.decode('"\\x"')
return cjson.decode('"abc')
return cjson.decode('"a\0b"')
return cjson.decode('[1,]')
return cjson.decode('[1 2]')
return cjson.decode('{"a" 1}')
return cjson.decode('{"a": 1,}')
return cjson.decode('{a: 1}')
return cjson.decode('{"a": 1')
return cjson.decode('[')
return cjson.decode('')
return cjson.decode('nul')
return cjson.decode('nulls')
return cjson.decode('tru')
return cjson.decode('1 2')
return cjson.decode('-')
return cjson.decode('+1')
return cjson.decode('.5')
return cjson.decode('@')
return {tostring(cjson.decode('-1.5e3')), tostring(cjson.decode('0x1F')), tostring(cjson.decode('012')), tostring(cjson.decode('1.')), tostring(cjson.decode('1e5'))}
return {tostring(cjson.decode('[Infinity]')[1]), tostring(cjson.decode('[-Infinity]')[1]), tostring(cjson.decode('[inf]')[1])}
return cjson.decode('[1e]')
return cjson.decode(string.rep('[', 1001) .. string.rep(']', 1001))
return cjson.decode(string.rep('[', 1000) .. string.rep(']', 1000)) ~= nil
return cjson.decode('\0\0')
return cjson.decode(' \t\r\n[ 1 , 2 ] ')
return cjson.decode('[1]]')
return tostring(cjson.decode('null'))
return cjson.encode(cjson.decode('{"a":[1,2.5,"x",null,true,{}]}'))
return {cjson.encode_sparse_array()}
cjson.encode_sparse_array(true) local r = cjson.encode({[1]=1, [100]=2}) cjson.encode_sparse_array(false) return r ~= ''
return cjson.encode_sparse_array(true, 'x')
cjson.encode_sparse_array(false) return 'in Redis it is still set'
return cjson.encode_sparse_array('foo')
return cjson.encode_max_depth(0)
return {cjson.encode_max_depth(), cjson.decode_max_depth(), cjson.encode_number_precision(), cjson.encode_keep_buffer(), cjson.encode_invalid_numbers(), cjson.decode_invalid_numbers()}
return cjson.encode_number_precision(20)
return cjson.encode_max_depth({})
return {cjson._NAME, cjson._VERSION, type(cjson.new().encode)}
return cmsgpack.pack()
return cmsgpack.pack(nil)
return cmsgpack.pack(1, 'a', {1, 2}, {a=1}, true, false, nil)
return cmsgpack.pack(0, 127, 128, 255, 256, 65535, 65536, 4294967295, 4294967296, 2^53)
return cmsgpack.pack(-1, -32, -33, -128, -129, -32768, -32769, -2147483648, -2147483649, -2^53)
return cmsgpack.pack(1.5, 0.1, -2.25, 1e300, 1/0, -1/0, 1e-310, 3.4e38, 1e39)
return cmsgpack.pack(('x'):rep(31), ('x'):rep(32), ('x'):rep(255), ('x'):rep(256))
return cmsgpack.pack({}, {{}}, {[1]=1, [2]=2}, {[1]=1, [3]=3}) ~= ''
return cmsgpack.pack(function() end)
local t = {} for i = 1, 20 do t[i] = i end return cmsgpack.pack(t)
local t = {} for i = 1, 20 do t = {t} end return cmsgpack.pack(t)
return cmsgpack.unpack()
return cmsgpack.unpack('')
return cmsgpack.unpack(cmsgpack.pack({1, 'a', {2}, 1.5}))
return {cmsgpack.unpack(cmsgpack.pack(1, 'a', true, -5, -100, -40000, -3000000000, 70000, 5000000000))}
return {cmsgpack.unpack('\207\255\255\255\255\255\255\255\255')}
return {cmsgpack.unpack('\211\255\255\255\255\255\255\255\254')}
return {cmsgpack.unpack('\196\2ab'), cmsgpack.unpack('\217\1a'), cmsgpack.unpack('\218\0\1a')}
return {tostring(cmsgpack.unpack('\202\63\192\0\0')), tostring(cmsgpack.unpack('\203\63\248\0\0\0\0\0\0'))}
return cmsgpack.unpack('\146\1')
return cmsgpack.unpack('\193')
return cmsgpack.unpack('\200')
return cmsgpack.unpack('\129\192\1')
return {cmsgpack.unpack_one('\1\2')}
return {cmsgpack.unpack_one('\1\2', 1)}
return {cmsgpack.unpack_one('\1\2', 9)}
return {cmsgpack.unpack_limit('\1\2\3', 2)}
return {cmsgpack.unpack_limit('\1\2\3', 2, 1)}
return {cmsgpack.unpack_limit('\1\2\3', -2, 1)}
return {cmsgpack._NAME, cmsgpack._VERSION}
return struct.pack('z', 1)
return struct.pack('i')
return struct.pack('s')
return struct.pack('c5', 'abc')
return struct.pack('!3i', 1)
return struct.pack('i33', 1)
return struct.pack('bBhHiIlLT', 1, 2, 3, 4, 5, 6, 7, 8, 9)
return struct.pack('>bBhHiIlLT', -1, 2, -3, 4, -5, 6, -7, 8, 9)
return struct.pack('>i3<i3', 1, -2)
return struct.pack('>i16', 5)
return struct.pack('b', 300)
return struct.pack('iI', 1.9, 2^40)
return struct.pack('i', -1.9)
return struct.pack('<d>d', 1.5, -0.0)
return struct.pack('<f>f', 1.5, 0.1)
return struct.pack('s', 'abc')
return struct.pack('c3', 'abcdef')
return struct.pack('c0', 'abcdef')
return struct.pack('xbx', 1)
return struct.pack('!4bi', 1, 2)
return struct.pack('!bd', 1, 2)
return struct.pack(' b b ', 1, 2)
return struct.pack('i', 'x')
return struct.pack('i', '5')
return struct.pack()
return struct.unpack('i', 'abc')
return {struct.unpack('bBhH', '\255\255\255\255\255\255')}
return {struct.unpack('<i4>i4', '\1\0\0\0\0\0\0\1')}
return {struct.unpack('l', '\255\255\255\255\255\255\255\255')}
return {struct.unpack('L', '\255\255\255\255\255\255\255\255')}
return {struct.unpack('i3', '\1\2\255')}
return {struct.unpack('s', 'abc\0def')}
return {struct.unpack('s', 'abc')}
return {struct.unpack('bc0', '\3abcd')}
return {struct.unpack('c0', 'abc')}
return {struct.unpack('c2', 'abc')}
return {struct.unpack('b', 'abc', 2)}
return {struct.unpack('b', 'abc', 0)}
return {struct.unpack('b', 'abc', 9)}
return {tostring(struct.unpack('<d', struct.pack('<d', 0.1))), tostring(struct.unpack('>f', struct.pack('>f', 0.1)))}
return {struct.unpack('!4bi', struct.pack('!4bi', 1, 2))}
return {struct.size('bhil'), struct.size('!bhil'), struct.size('!2bi'), struct.size('c5x'), struct.size('i3')}
return struct.size('s')
return struct.size('c0')
return struct.size('q')
"""
MANY_LINES = [
    "\nredis.call('lpush', 'a')",
    "local function f()\n redis.call('nosuch') end\nf()",
    "local x = function()\n error('hey') end\npcall(x)\nx()",
    "local s = 'return redis.call(1)' -- return redis.call(\n--[[ return redis.call( ]]\nreturn\n"
    " redis . call ('nosuch', [[)]], \")\")",
    "if true then\n return redis.call('nosuch')\nelse return 1 end",
    "local f = redis.call\nlocal ok = f('set', 'x', 1)\nreturn ok",
    "#!lua\nreturn redis.call('nosuch')",
    "#!lua flags=no-writes\nreturn redis.call('set', 'a', 1)",
    "#!lua flags=no-writes,allow-stale\nreturn 5",
    "#!lua name=x\nreturn 1",
    "#!lua flags=foo\nreturn 1",
    "#!lua flags=no-writes foo=1\nreturn 1",
    "#!bash\nreturn 1",
    "#!lua",
    "#!lua flags=allow-oom,no-cluster\n\nx = 1",
    "return {\n 1,\n 2 }",
    "local t = {}\nt.x.y = 1",
]
SCRIPTS = [line for line in PLAIN.strip().splitlines() if line] + MANY_LINES
