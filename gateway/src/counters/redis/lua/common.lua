-- What every script begins with.
--
-- KEYS[1]: the gateways, and until when each is alive (ms). ARGV: this gateway, for how long it is alive from now on (ms), the least that the
-- time can be (us), and the time itself where a test says it (us, else 0).
--
-- Numbers are doubles: whole ones are exact below 2^53, which is nine million dollars in nano-dollars. Nothing larger is ever sent.
local me, lease = ARGV[1], tonumber(ARGV[2])
local now_us = tonumber(ARGV[4])
if now_us == 0 then
    local clock = redis.call('TIME')
    now_us = clock[1] * 1000000 + clock[2]
end
now_us = math.max(now_us, tonumber(ARGV[3]))
local now = math.floor(now_us / 1000)

local STALE = -1
local MOST = 9007199254740991
local HOUR, DAY = 3600000, 86400000

local function text(number)
    return string.format('%.0f', number)
end

local alive = {}
local function is_alive(gateway)
    if alive[gateway] == nil then
        local till = redis.call('ZSCORE', KEYS[1], gateway)
        alive[gateway] = till ~= false and tonumber(till) >= now
    end
    return alive[gateway]
end

local function renew()
    redis.call('ZADD', KEYS[1], text(now + lease), me)
end

-- A budget ends by itself: an hour after its window, or when nobody has asked for a month. It is no loss, for the ledger knows.
local function expire(key, finish)
    redis.call('PEXPIRE', key, text(finish ~= 0 and math.max(finish - now, 0) + HOUR or 30 * DAY))
end

-- A budget's next window begins. All that is used in it was seen, so it needs no seed.
local function begin(key, start, finish, sum)
    redis.call('HSET', key, 'window', text(start), 'base', '0', 'sum', text(sum))
    redis.call('HDEL', key, 'least')
    expire(key, finish)
end

-- What was taken in the last 60 seconds, in 61 slots of a second each: how much, and in which of its milliseconds the last of it. A slot is
-- forgotten 60 seconds after that. It is kept as one string: the latest moment that was spoken of, the sum, then the slots.
local SPAN, SLOTS, HEAD, SLOT = 60000, 61, 16, 6
local MOST_OF_SLOT = 4294967295

local Rate = {}
Rate.__index = Rate

local function open_rate(key)
    local kept = redis.call('GET', key)
    local rate = setmetatable({ key = key, at = now, sum = 0 }, Rate)
    if kept then
        rate.at, rate.sum = struct.unpack('<dd', kept)
        rate.slots = string.sub(kept, HEAD + 1)
    else
        rate.slots = string.rep('\0', SLOTS * SLOT)
    end
    rate:slide()
    return rate
end

local function second_of(moment)
    return math.floor(moment / 1000)
end

function Rate:slot(second)
    local amount, last = struct.unpack('<I4I2', self.slots, second % SLOTS * SLOT + 1)
    return amount, last
end

function Rate:put(second, amount, last)
    local from = second % SLOTS * SLOT
    self.slots = string.sub(self.slots, 1, from) .. struct.pack('<I4I2', amount, last) .. string.sub(self.slots, from + SLOT + 1)
    self.changed = true
end

function Rate:forget(second)
    self.sum = self.sum - self:slot(second)
    self:put(second, 0, 0)
end

function Rate:slide()
    local last, this = second_of(self.at), second_of(math.max(now, self.at))
    self.at = math.max(now, self.at)
    if self.sum == 0 then
        return
    end
    for second = last + 1, math.min(this, last + SLOTS) do
        self:forget(second)
    end
    local amount, latest = self:slot(this - 60)
    if latest <= self.at % 1000 and (amount > 0 or latest > 0) then
        self:forget(this - 60)
    end
end

function Rate:add(more, moment)
    local second = second_of(moment)
    local was, last = self:slot(second)
    local amount = math.min(was + more, MOST_OF_SLOT)
    self.sum = self.sum + amount - was
    -- What stands in an empty slot is of a second long past.
    self:put(second, amount, was == 0 and moment % 1000 or math.max(last, moment % 1000))
end

function Rate:subtract(less, second)
    local was, last = self:slot(second)
    less = math.min(less, was)
    self.sum = self.sum - less
    self:put(second, was - less, last)
end

-- At `moment`, `more` was used than had been taken; less, where it is negative.
function Rate:correct(moment, more)
    moment = math.min(moment, self.at)
    if more > 0 then
        self:add(more, moment + SPAN > self.at and moment or self.at)
    elseif second_of(moment) > second_of(self.at) - SLOTS then
        self:subtract(-more, second_of(moment))
    end
end

-- How long until `excess` of it is forgotten, in ms.
function Rate:wait(excess)
    local this = second_of(self.at)
    for second = this - 60, this do
        local amount, last = self:slot(second)
        excess = excess - amount
        if excess <= 0 then
            return second * 1000 + last + SPAN - self.at
        end
    end
    return SPAN
end

-- How long until all of it is forgotten, in ms.
function Rate:reset()
    local this = second_of(self.at)
    for second = this, this - 60, -1 do
        local amount, last = self:slot(second)
        if amount > 0 then
            return math.max(second * 1000 + last + SPAN - self.at, 0)
        end
    end
    return 0
end

function Rate:keep()
    if self.changed then
        redis.call('SET', self.key, struct.pack('<dd', self.at, self.sum) .. self.slots, 'PX', SPAN + 1000)
    end
end
