-- What was used in budgets' windows before they were opened. KEYS goes on: the budgets. ARGV goes on: for each the window's begin and when it was
-- opened (ms), and what was used. It counts once, and only for the budget that asked for it.
local COLUMNS = 3
for at = 2, #KEYS do
    local from = 5 + (at - 2) * COLUMNS
    local window, opened, least = unpack(redis.call('HMGET', KEYS[at], 'window', 'opened', 'least'))
    if window and tonumber(window) == tonumber(ARGV[from]) and tonumber(opened) == tonumber(ARGV[from + 1]) then
        redis.call('HSETNX', KEYS[at], 'base', text(math.max(tonumber(ARGV[from + 2]), tonumber(least or 0))))
    end
end
return { 0, now_us }
