-- How budgets stand. KEYS goes on: of each what is used and what is held. ARGV goes on: where the window of each begins (ms). Answers with the
-- time (us), and of each what is used, or -1 where nobody knows, and what is held.
local answer = { 0, now_us }
for at = 2, #KEYS, 2 do
    local start = tonumber(ARGV[5 + (at - 2) / 2])
    local window, base, sum = unpack(redis.call('HMGET', KEYS[at], 'window', 'base', 'sum'))
    local used = -1
    if window and tonumber(window) < start then
        used = 0
    elseif base then
        used = tonumber(base) + tonumber(sum)
    end
    local held = 0
    local all = redis.call('HGETALL', KEYS[at + 1])
    for field = 1, #all, 2 do
        if is_alive(all[field]) then
            held = held + tonumber(all[field + 1])
        end
    end
    answer[#answer + 1] = used
    answer[#answer + 1] = held
end
return answer
