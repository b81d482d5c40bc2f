-- A gateway goes, and nothing of it is missing. KEYS goes on: how many messages of it were counted.
redis.call('ZREM', KEYS[1], me)
redis.call('DEL', KEYS[2])
return { 0, now_us }
