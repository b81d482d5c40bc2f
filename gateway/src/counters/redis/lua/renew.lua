-- A gateway is still there.
if not is_alive(me) then
    return { STALE, now_us }
end
renew()
return { 0, now_us }
