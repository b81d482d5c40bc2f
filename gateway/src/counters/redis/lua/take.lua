-- Takes from all counters, or from none.
--
-- ARGV goes on: the output that is wanted, the least that is of use, how many times what is fixed must fit where it is rough; then for each claim its kind, how
-- far the counter may go, what is fixed and what each token of output adds (both as whole units and thousandths), whether it is forced,
-- whether it is rough, and where its window begins and ends (ms; 0: never). KEYS goes on: of a budget what is used and what is held, of places
-- what is held, of a rate itself.
--
-- Answers with what came of it and the time (us); then
--   TAKEN     the output, and of each rate what is left and how long until all of it is there again (ms)
--   DENIED    which claim, how long to wait (ms; of a rate; NEVER: it is more than the whole), whether anything of it
--             may fit (1 or 0), and the rates
--   UNSEEDED  of each budget that does not know what was used: which claim, and when it was opened (ms)
--   ELSEWHEN  nothing: the windows are not those of this time
local TAKEN, DENIED, UNSEEDED, ELSEWHEN = 0, 1, 2, 3
local BUDGET, PLACES = 0, 1
local COLUMNS = 10
local NEVER = -1

if not is_alive(me) then
    return { STALE, now_us }
end

local wanted, least, margin = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local claims = {}
local key = 2
for from = 8, #ARGV, COLUMNS do
    local claim = {
        kind = tonumber(ARGV[from]),
        most = tonumber(ARGV[from + 1]),
        fixed = tonumber(ARGV[from + 2]),
        fixed_rest = tonumber(ARGV[from + 3]),
        each = tonumber(ARGV[from + 4]),
        each_rest = tonumber(ARGV[from + 5]),
        forced = ARGV[from + 6] == '1',
        rough = ARGV[from + 7] == '1',
        start = tonumber(ARGV[from + 8]),
        finish = tonumber(ARGV[from + 9]),
    }
    if claim.kind == BUDGET then
        if now < claim.start or (claim.finish ~= 0 and now >= claim.finish) then
            return { ELSEWHEN, now_us }
        end
        claim.used, claim.held = KEYS[key], KEYS[key + 1]
        key = key + 2
    elseif claim.kind == PLACES then
        claim.held = KEYS[key]
        key = key + 1
    else
        claim.rate = open_rate(KEYS[key])
        key = key + 1
    end
    claims[#claims + 1] = claim
end

-- What live gateways hold; and whether there was one that is gone.
local function held(claim)
    local sum, gone = 0, {}
    local all = redis.call('HGETALL', claim.held)
    for at = 1, #all, 2 do
        if is_alive(all[at]) then
            sum = sum + tonumber(all[at + 1])
        else
            gone[#gone + 1] = all[at]
        end
    end
    for _, gateway in ipairs(gone) do
        redis.call('HDEL', claim.held, gateway)
    end
    return sum, #gone > 0
end

-- What is used in a budget's window; or nothing, and since when it has been waiting for its seed.
local function used(claim)
    local window, opened, base, sum = unpack(redis.call('HMGET', claim.used, 'window', 'opened', 'base', 'sum'))
    if not window then
        redis.call('HSET', claim.used, 'window', text(claim.start), 'opened', text(now), 'sum', '0')
        expire(claim.used, claim.finish)
        return nil, now
    end
    if tonumber(window) < claim.start then
        begin(claim.used, claim.start, claim.finish, 0)
        return 0
    end
    if claim.finish == 0 then
        expire(claim.used, 0)
    end
    if not base then
        return nil, tonumber(opened)
    end
    return tonumber(base) + tonumber(sum)
end

-- What a gateway that is gone had still to tell, the ledger knows. It cannot know less than was told.
local function ask_again(key)
    local base, sum = unpack(redis.call('HMGET', key, 'base', 'sum'))
    if base then
        redis.call('HSET', key, 'opened', text(now), 'least', text(tonumber(base) + tonumber(sum)), 'sum', '0')
        redis.call('HDEL', key, 'base')
    end
end

local unseeded = { UNSEEDED, now_us }
for index, claim in ipairs(claims) do
    if claim.kind == BUDGET then
        local held, lost = held(claim)
        if lost then
            ask_again(claim.used)
        end
        local used, opened = used(claim)
        if used then
            claim.room = claim.most - used - held
        else
            unseeded[#unseeded + 1] = index - 1
            unseeded[#unseeded + 1] = opened
        end
    elseif claim.kind == PLACES then
        claim.room = claim.most - held(claim)
    else
        claim.room = claim.most - claim.rate.sum
    end
end
if #unseeded > 2 then
    return unseeded
end

-- How much a claim is, with what is fixed so many times.
local function amount(claim, output, times)
    local rest = math.floor((claim.fixed_rest * times + claim.each_rest * output + 500) / 1000)
    return math.min(claim.fixed * times + claim.each * output + rest, MOST)
end

-- The most tokens of output, up to `output`, that fit. A division of doubles may be off by one, so it is put right.
local function output_within(claim, output)
    if amount(claim, output, 1) <= claim.room then
        return output
    end
    local each = claim.each * 1000 + claim.each_rest
    if each == 0 then
        return output
    end
    local fits = math.floor(((claim.room - claim.fixed) * 1000 + 499 - claim.fixed_rest) / each)
    fits = math.max(math.min(fits, output), 0)
    while fits > 0 and amount(claim, fits, 1) > claim.room do
        fits = fits - 1
    end
    while fits < output and amount(claim, fits + 1, 1) <= claim.room do
        fits = fits + 1
    end
    return fits
end

local output = wanted
for _, claim in ipairs(claims) do
    if claim.kind == BUDGET and not claim.forced and not claim.rough then
        output = output_within(claim, output)
    end
end
output = math.max(output, math.min(least, wanted))

local function answer(...)
    local answer = { ... }
    for _, claim in ipairs(claims) do
        if claim.rate then
            answer[#answer + 1] = math.max(claim.most - claim.rate.sum, 0)
            answer[#answer + 1] = claim.rate:reset()
        end
    end
    return answer
end

-- How long until a claim fits; nothing where it does.
local function refused(claim)
    -- What is roughly known is not lowered: first it is counted exactly.
    local amount = claim.rough and amount(claim, wanted, margin) or amount(claim, output, 1)
    if claim.forced or amount == 0 or amount <= claim.room then
        return nil
    elseif amount > claim.most then
        return NEVER
    end
    return claim.rate and claim.rate:wait(amount - claim.room) or 0
end

-- Whether anything of a claim fits at all, be what is fixed as little as it may: else it need not be counted exactly.
local function may_fit(claim)
    local bare = claim.each * least + math.floor((claim.each_rest * least + 500) / 1000)
    return math.max(bare, 1) <= claim.room
end

local first, wait
for index, claim in ipairs(claims) do
    local refused = refused(claim)
    if refused and not first then
        first, wait = index, refused
    elseif refused and claim.rate and claims[first].rate and wait ~= NEVER then
        -- Where several rates are in the way, so long that none of them is any more.
        wait = math.max(wait, refused)
    end
end
if first then
    return answer(DENIED, now_us, first - 1, wait, may_fit(claims[first]) and 1 or 0)
end

for _, claim in ipairs(claims) do
    local amount = amount(claim, output, 1)
    if claim.rate then
        claim.rate:add(amount, claim.rate.at)
        claim.rate:keep()
    elseif amount > 0 then
        redis.call('HINCRBY', claim.held, me, text(amount))
        redis.call('PEXPIRE', claim.held, DAY)
    end
end
renew()
return answer(TAKEN, now_us, output)
