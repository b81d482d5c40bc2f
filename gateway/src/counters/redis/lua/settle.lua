-- What became of holds. KEYS goes on: how many such messages of this gateway were counted; then the keys of each line. ARGV goes on: the number
-- of this message, how long ago it was (ms); then for each line its kind and five numbers:
--   BUDGET  given back, used, the window's begin and end (ms)     KEYS: what is used, what is held
--   PLACES  given back                                            KEYS: what is held
--   RATE    when it was taken (ms), how much more was used        KEYS: the rate
--
-- Messages are counted in their order, each once: one that is not next changes nothing.
local BUDGET, PLACES = 0, 1
local COLUMNS = 5

local counted = redis.call('GET', KEYS[2])
local number = tonumber(ARGV[5])
if not is_alive(me) or not counted or tonumber(counted) ~= number - 1 then
    return { STALE, now_us }
end
local happened = now - tonumber(ARGV[6])

-- Never below nothing: whoever was gone for a while holds nothing any more.
local function give_back(key, amount)
    if amount > 0 and redis.call('HINCRBY', key, me, text(-amount)) <= 0 then
        redis.call('HDEL', key, me)
    end
end

-- A budget that is not there, or was opened later, gets what was used from the ledger: unless it was so shortly before that it may not have been
-- written down when the ledger was asked. One whose window is over needs it no more.
local WRITTEN = 5000
local function use(key, amount, start, finish)
    local window, opened, sum = unpack(redis.call('HMGET', key, 'window', 'opened', 'sum'))
    if amount == 0 or not window or happened + WRITTEN < tonumber(opened) then
        return
    end
    window = tonumber(window)
    if start > window and start <= now then
        begin(key, start, finish, amount)
    elseif start >= window then
        redis.call('HSET', key, 'sum', text(math.min(tonumber(sum) + amount, MOST)))
    end
end

local key = 3
for from = 7, #ARGV, COLUMNS do
    local kind = tonumber(ARGV[from])
    local first, second = tonumber(ARGV[from + 1]), tonumber(ARGV[from + 2])
    if kind == BUDGET then
        use(KEYS[key], second, tonumber(ARGV[from + 3]), tonumber(ARGV[from + 4]))
        give_back(KEYS[key + 1], first)
        key = key + 2
    elseif kind == PLACES then
        give_back(KEYS[key], first)
        key = key + 1
    else
        local rate = open_rate(KEYS[key])
        rate:correct(first, second)
        rate:keep()
        key = key + 1
    end
end
redis.call('SET', KEYS[2], text(number), 'PX', DAY)
renew()
return { 0, now_us }
