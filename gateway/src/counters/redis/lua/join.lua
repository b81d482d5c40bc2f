-- A gateway comes, or comes back under a new name. KEYS goes on: how many messages were counted of its last name, and of its new one; then where
-- what it holds is kept. ARGV goes on: how many names it had since, those names, and for each of the keys how much it holds.
--
-- From here on nothing that was sent under an old name changes anything, however late it comes. Answers with the time (us) and how many messages
-- of the last name were counted.
-- First of all something that a server without room refuses: it is not there then, and nothing was done.
redis.call('SET', KEYS[3], '0', 'PX', DAY)
local names = tonumber(ARGV[5])
for at = 6, 5 + names do
    redis.call('ZREM', KEYS[1], ARGV[at])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. text(now))
for at = 4, #KEYS do
    for name = 6, 5 + names do
        redis.call('HDEL', KEYS[at], ARGV[name])
    end
    redis.call('HSET', KEYS[at], me, ARGV[5 + names + at - 3])
    redis.call('PEXPIRE', KEYS[at], DAY)
end
renew()
return { 0, now_us, tonumber(redis.call('GET', KEYS[2]) or 0) }
