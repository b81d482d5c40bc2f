//! The rules of taking, settling and giving back, one by one.

use super::*;

#[test]
fn a_budget_is_unknown_until_it_is_seeded_and_all_that_are_so_are_told_at_once() {
    let (day, month) = (limit(budget(Unit::Usd, Per::Day), 100), limit(budget(Unit::Usd, Per::Month), 1000));
    let rate = limit(What::RequestRate, 1);
    let memory = Memory::default();
    let want = wanted([claim(&rate, 1), claim(&day, 10), claim(&month, 10)]);

    let of = unseeded(memory.take(&want, ms(0)));
    assert_eq!(of.iter().map(|of| &of.limit).collect::<Vec<_>>(), [&day, &month]);
    assert_eq!(of[0].since, ms(0));
    assert_eq!(of[1].since, "2026-10-01T00:00Z".parse().unwrap());
    assert_eq!(unseeded(memory.take(&want, ms(1))).len(), 2, "asking again changes nothing");
    assert_eq!(memory.read(&[Arc::clone(&day)], ms(1)), []);

    memory.seed(&[Seed { of: of[0].clone(), used: 91 }]);
    assert_eq!(unseeded(memory.take(&want, ms(2))), [of[1].clone()]);
    memory.seed(&[Seed { of: of[1].clone(), used: 0 }]);
    assert_eq!(denied(memory.take(&want, ms(3))).limit, day);
    memory.seed(&[Seed { of: of[0].clone(), used: 0 }]);
    assert_eq!(denied(memory.take(&want, ms(3))).limit, day, "a second seed changes nothing");
}

#[test]
fn what_is_settled_before_the_seed_comes_is_counted_beside_it() {
    let day = limit(budget(Unit::Tokens, Per::Day), 100);
    let memory = Memory::default();
    let of = unseeded(memory.take(&wanted([claim(&day, 10)]), ms(0)));
    memory.settle(&[Held { limit: Arc::clone(&day), amount: 0, at: ms(0) }], &tokens(30), ms(1));
    memory.seed(&[Seed { of: of[0].clone(), used: 50 }]);
    assert_eq!(stands(&memory, &day, ms(1)), (80, 0));
}

#[test]
fn a_seed_that_comes_when_the_window_is_over_is_of_no_use() {
    let minute = limit(budget(Unit::Tokens, Per::Minute), 100);
    let memory = Memory::default();
    let of = unseeded(memory.take(&wanted([claim(&minute, 10)]), ms(59_999)));
    assert_eq!(memory.read(&[Arc::clone(&minute)], ms(60_000)).len(), 1, "all of the new window was seen");
    memory.seed(&[Seed { of: of[0].clone(), used: 99 }]);
    assert_eq!(stands(&memory, &minute, ms(60_000)), (0, 0));
}

#[test]
fn all_is_taken_or_nothing() {
    let (day, rate) = (limit(budget(Unit::Usd, Per::Day), 100), limit(What::RequestRate, 5));
    let (busy, most) = (limit(What::Concurrent, 1), limit(What::TokenRate, 50));
    let memory = seeded(&[(&day, 0)], ms(0));
    let all = |tokens| wanted([claim(&day, 10), claim(&rate, 1), claim(&busy, 1), claim(&most, tokens)]);
    assert_eq!(denied(memory.take(&all(51), ms(0))).limit, most);
    assert_eq!(stands(&memory, &day, ms(0)), (0, 0));

    let taken = taken(memory.take(&all(50), ms(0)));
    assert_eq!(
        taken.held.iter().map(|held| (&held.limit, held.amount)).collect::<Vec<_>>(),
        [(&day, 10), (&rate, 1), (&busy, 1), (&most, 50)]
    );
    assert_eq!(taken.rates.iter().map(|rate| rate.remaining).collect::<Vec<_>>(), [4, 0]);
    assert_eq!(taken.rates[0].reset, Duration::from_secs(60));
}

#[test]
fn the_first_in_the_way_is_named_and_when_to_come_again() {
    let (day, total) = (limit(budget(Unit::Usd, Per::Day), 100), limit(budget(Unit::Usd, Per::Total), 1000));
    let (rate, tokens, busy) = (limit(What::RequestRate, 1), limit(What::TokenRate, 100), limit(What::Concurrent, 1));
    let day_ends = ms(24 * 3600 * 1000);
    let after = |seconds| Again::After(Duration::from_secs(seconds));
    let cases = [
        (vec![claim(&day, 11), claim(&rate, 1)], &day, Again::At(day_ends)),
        (vec![claim(&rate, 1), claim(&day, 11)], &rate, after(50)),
        (vec![claim(&day, 101)], &day, Again::At(day_ends)),
        (vec![claim(&day, 10), claim(&total, 101)], &total, Again::Never),
        (vec![claim(&rate, 2)], &rate, Again::Never),
        (vec![claim(&rate, 1), claim(&tokens, 30)], &rate, after(55)),
        (vec![claim(&tokens, 30), claim(&busy, 1), claim(&rate, 1)], &tokens, after(55)),
        (vec![claim(&busy, 1), claim(&day, 101)], &busy, Again::WhenFree),
        (vec![claim(&busy, 2)], &busy, Again::Never),
    ];
    let memory = seeded(&[(&day, 90), (&total, 900)], ms(0));
    taken(memory.take(&wanted([claim(&rate, 1), claim(&busy, 1)]), ms(0)));
    taken(memory.take(&wanted([claim(&tokens, 80)]), ms(5000)));
    for (claims, first, again) in cases {
        let denied = denied(memory.take(&wanted(claims.clone()), ms(10_000)));
        assert_eq!((&denied.limit, denied.again, denied.was_rough), (first, again, false), "{claims:?}");
        for reading in denied.rates {
            assert_eq!(reading.remaining, if reading.limit == rate { 0 } else { 20 });
        }
    }
}

#[test]
fn output_is_lowered_to_what_fits_into_every_budget() {
    // Room for dollars and for tokens, the output wanted and the least of use: the output taken.
    let cases = [
        (1000, 1000, 100, 10, Some(100)),
        (300, 1000, 100, 10, Some(100)),
        (299, 1000, 100, 10, Some(99)),
        (80, 1000, 100, 10, Some(12)),
        (75, 1000, 100, 10, Some(10)),
        (74, 1000, 100, 10, None),
        (1000, 69, 100, 10, Some(49)),
        (150, 69, 100, 10, Some(40)),
        (150, 29, 100, 10, None),
        (49, 1000, 100, 0, None),
        (50, 20, 100, 0, Some(0)),
        (299, 1000, 100, 100, None),
        (299, 1000, 100, 200, None),
    ];
    let (dollars, tokens) = (limit(budget(Unit::Usd, Per::Day), 1000), limit(budget(Unit::Tokens, Per::Day), 1000));
    for (usd_room, token_room, output, least_output, right) in cases {
        let memory = seeded(&[(&dollars, 1000 - usd_room), (&tokens, 1000 - token_room)], ms(0));
        let claims = vec![Claim { each: 2500, ..claim(&dollars, 50) }, Claim { each: 1000, ..claim(&tokens, 20) }];
        let took = match memory.take(&Wanted { claims, output, least_output, margin: 1 }, ms(0)) {
            Taking::Taken(taken) => {
                assert_eq!(taken.held[0].amount, 50 + (taken.output * 5).div_ceil(2));
                Some(taken.output)
            }
            Taking::Denied(_) => None,
            Taking::Unseeded(unseeded) => panic!("{unseeded:?}"),
        };
        assert_eq!(took, right, "{usd_room} {token_room} {output} {least_output}");
    }
}

#[test]
fn an_output_that_some_other_limit_refuses_is_not_taken() {
    let (dollars, rate) = (limit(budget(Unit::Usd, Per::Day), 100), limit(What::TokenRate, 50));
    let memory = seeded(&[(&dollars, 0)], ms(0));
    let claims = vec![Claim { each: 1000, ..claim(&dollars, 0) }, Claim { each: 1000, ..claim(&rate, 0) }];
    let want = |output, least_output| Wanted { claims: claims.clone(), output, least_output, margin: 1 };
    let refused = denied(memory.take(&want(120, 60), ms(0)));
    assert_eq!((&refused.limit, refused.again), (&rate, Again::Never), "a budget lowers, a rate does not");
    assert_eq!(taken(memory.take(&want(50, 10), ms(0))).output, 50);
}

#[test]
fn what_is_roughly_known_must_fit_several_times() {
    let day = limit(budget(Unit::Tokens, Per::Day), 100);
    let memory = seeded(&[(&day, 40)], ms(0));
    let want = |fixed, rough| Wanted {
        claims: vec![Claim { rough, each: 1000, ..claim(&day, fixed) }],
        output: 10,
        least_output: 1,
        margin: 3,
    };
    let refused = denied(memory.take(&want(17, true), ms(0)));
    assert!(refused.was_rough, "it could still fit, counted exactly");
    assert!(!denied(seeded(&[(&day, 100)], ms(0)).take(&want(1, true), ms(0))).was_rough, "no count makes room where none is");
    let held = taken(memory.take(&want(16, true), ms(0)));
    assert_eq!((held.output, held.held[0].amount), (10, 26), "what is taken is taken once");
    assert_eq!(taken(memory.take(&want(29, false), ms(0))).output, 5, "what is exact is lowered");
    assert_eq!(stands(&memory, &day, ms(0)), (40, 60));
}

#[test]
fn what_is_forced_is_taken_though_it_does_not_fit() {
    let (day, rate) = (limit(budget(Unit::Tokens, Per::Day), 100), limit(What::TokenRate, 100));
    let memory = seeded(&[(&day, 100)], ms(0));
    let forced = |limit, fixed| Claim { forced: true, ..claim(limit, fixed) };
    let held = taken(memory.take(&wanted([forced(&day, 50), forced(&rate, 130)]), ms(0)));
    assert_eq!((held.held[0].amount, held.rates[0].remaining), (50, 0));
    assert_eq!(stands(&memory, &day, ms(0)), (100, 50));
    assert_eq!(denied(memory.take(&wanted([claim(&rate, 1)]), ms(0))).again, Again::After(Duration::from_secs(60)));
}

#[test]
fn nothing_fits_where_nothing_is_left() {
    let day = limit(budget(Unit::Usd, Per::Day), 100);
    let memory = seeded(&[(&day, 150)], ms(0));
    taken(memory.take(&wanted([claim(&day, 0)]), ms(0)));
    denied(memory.take(&wanted([claim(&day, 1)]), ms(0)));
}

#[test]
fn a_hold_is_settled_with_what_was_used_or_given_back_whole() {
    let (dollars, number) = (limit(budget(Unit::Usd, Per::Day), 100), limit(budget(Unit::Requests, Per::Day), 10));
    let (busy, rate, most) = (limit(What::Concurrent, 1), limit(What::RequestRate, 5), limit(What::TokenRate, 100));
    let memory = seeded(&[(&dollars, 0), (&number, 0)], ms(0));
    let want = wanted([claim(&dollars, 40), claim(&number, 1), claim(&busy, 1), claim(&rate, 1), claim(&most, 30)]);
    let hold = |now| Hold::new(Arc::clone(&memory) as Arc<dyn Counters>, taken(memory.take(&want, now)).held);
    let left = || {
        let taken = taken(memory.take(&wanted([claim(&rate, 0), claim(&most, 0)]), ms(10)));
        taken.rates.iter().map(|rate| rate.remaining).collect::<Vec<_>>()
    };

    let first = hold(ms(0));
    assert_eq!((stands(&memory, &dollars, ms(0)), stands(&memory, &number, ms(0))), ((0, 40), (0, 1)));
    denied(memory.take(&want, ms(0)));
    first.settle(&Used { usd: 15, tokens: 20, requests: 1 }, ms(5));
    assert_eq!((stands(&memory, &dollars, ms(5)), stands(&memory, &number, ms(5))), ((15, 0), (1, 0)));
    assert_eq!(left(), [4, 80]);

    drop(hold(ms(10)));
    assert_eq!((stands(&memory, &dollars, ms(10)), stands(&memory, &number, ms(10))), ((15, 0), (1, 0)));
    assert_eq!(left(), [3, 80], "a request that was made was made");
}

#[test]
fn a_hold_outlives_its_window_and_is_settled_in_the_next() {
    let minute = limit(budget(Unit::Usd, Per::Minute), 100);
    let memory = seeded(&[(&minute, 20)], ms(0));
    let held = taken(memory.take(&wanted([claim(&minute, 60)]), ms(0))).held;
    assert_eq!(stands(&memory, &minute, ms(59_999)), (20, 60));
    assert_eq!(stands(&memory, &minute, ms(60_000)), (0, 60));
    assert_eq!(denied(memory.take(&wanted([claim(&minute, 41)]), ms(60_000))).again, Again::At(ms(120_000)));
    memory.settle(&held, &usd(50), ms(61_000));
    assert_eq!(stands(&memory, &minute, ms(61_000)), (50, 0));
    assert_eq!(stands(&memory, &minute, ms(600_000)), (0, 0));
}

#[test]
fn a_changed_limit_keeps_what_was_used() {
    let (old, new) = (limit(budget(Unit::Usd, Per::Day), 100), limit(budget(Unit::Usd, Per::Day), 30));
    let memory = seeded(&[(&old, 0)], ms(0));
    let held = taken(memory.take(&wanted([claim(&old, 50)]), ms(0))).held;
    denied(memory.take(&wanted([claim(&new, 1)]), ms(0)));
    memory.settle(&held, &usd(20), ms(0));
    assert_eq!(taken(memory.take(&wanted([claim(&new, 10)]), ms(0))).held[0].limit, new);
    assert_eq!(stands(&memory, &old, ms(0)), (20, 10));
}

#[test]
fn a_clock_that_goes_back_opens_no_window_again() {
    let minute = limit(budget(Unit::Usd, Per::Minute), 100);
    let memory = seeded(&[(&minute, 0)], ms(0));
    memory.settle(&[], &usd(0), ms(60_000));
    let held = taken(memory.take(&wanted([claim(&minute, 10)]), ms(60_000))).held;
    memory.settle(&held, &usd(10), ms(59_000));
    assert_eq!(stands(&memory, &minute, ms(59_000)), (10, 0));
}

#[test]
fn amounts_that_are_absurd_are_refused_or_counted_as_very_many() {
    let (day, busy, rate) = (limit(budget(Unit::Usd, Per::Day), u64::MAX), limit(What::Concurrent, 9), limit(What::TokenRate, 9));
    let memory = seeded(&[(&day, u64::MAX - 1)], ms(0));
    let huge = |limit, forced| Claim { each: u64::MAX, forced, rough: true, ..claim(limit, u64::MAX) };
    let want = |forced| Wanted {
        claims: vec![huge(&day, forced), huge(&busy, forced), huge(&rate, forced)],
        output: u64::MAX,
        least_output: 0,
        margin: u64::MAX,
    };
    denied(memory.take(&want(false), ms(0)));
    let held = taken(memory.take(&want(true), ms(0))).held;
    memory.settle(&held, &Used { usd: u64::MAX, tokens: u64::MAX, requests: u64::MAX }, ms(0));
    memory.give_back(&held);
    assert_eq!(stands(&memory, &day, ms(0)), (u64::MAX, 0));
    taken(memory.take(&wanted([claim(&busy, 9), claim(&rate, 9)]), ms(0)));
}

#[test]
fn case_37_tokens_are_taken_by_estimate_and_corrected() {
    let rate = limit(What::TokenRate, 1000);
    let memory = Memory::default();
    let prompt = |tokens| wanted([claim(&rate, tokens)]);
    let left = |now| taken(memory.take(&prompt(0), now)).rates[0].remaining;

    let first = taken(memory.take(&prompt(900), ms(0))).held;
    memory.settle(&first, &tokens(950), ms(2000));
    assert_eq!(left(ms(2000)), 50);
    let second = denied(memory.take(&prompt(900), ms(3000)));
    assert_eq!(second.again, Again::After(Duration::from_secs(57)));
    assert_eq!(second.rates[0].remaining, 50);
    assert_eq!(denied(memory.take(&prompt(1200), ms(3000))).again, Again::Never);

    let failed = taken(memory.take(&prompt(900), ms(60_000))).held;
    memory.give_back(&failed);
    assert_eq!(left(ms(60_000)), 1000, "what never reached a provider costs nothing");
}
