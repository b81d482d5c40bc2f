//! How much of a model's window a prompt may fill.

/// A window, and what of it is not for the prompt; in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// The whole window.
    pub(super) window: u64,
    /// What is left free for the answer.
    pub(super) reserve: u64,
    /// What is left free because counts are estimates, and providers add words of their own.
    pub(super) safety: u64,
}

/// The room for an answer of a model of which nobody knows how long its answers can be: a fiftieth of the window, and no less than this.
const ANSWER: u64 = 1000;

impl Room {
    /// That of a window of so many tokens. The answer's place is the limit that the call has; else the model's longest answer, but no more than a
    /// quarter of the window: some models can answer with half of their window or all of it, and hardly ever do.
    pub(super) fn of(window: u32, output_limit: Option<u64>, longest_answer: Option<u32>) -> Self {
        let window = u64::from(window);
        let longest = longest_answer.map_or((window / 50).max(ANSWER), u64::from);
        let reserve = output_limit.unwrap_or(longest.min(window / 4));
        Self { window, reserve, safety: (window * 3).div_ceil(100) }
    }

    /// The same of a window that is only guessed: a limit that leaves nothing of it says that the guess is wrong.
    pub(super) fn of_guess(window: u32, output_limit: Option<u64>, longest_answer: Option<u32>) -> Self {
        let room = Self::of(window, output_limit, longest_answer);
        Self { reserve: room.reserve.min(room.window / 4), ..room }
    }

    /// What is left for the prompt.
    pub(super) fn budget(self) -> u64 {
        self.window.saturating_sub(self.reserve).saturating_sub(self.safety)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_window() {
        let table = [
            // window, limit of the call, longest answer; reserve, safety, budget
            (8192, None, None, (1000, 246, 6946)),
            (128_000, None, None, (2560, 3840, 121_600)),
            (128_000, None, Some(16_384), (16_384, 3840, 107_776)),
            (200_000, None, Some(100_000), (50_000, 6000, 144_000)),
            (2000, None, None, (500, 60, 1440)),
            (8192, Some(4096), Some(100), (4096, 246, 3850)),
            (8192, Some(1), None, (1, 246, 7945)),
            (8192, Some(8000), None, (8000, 246, 0)),
            (1, None, None, (0, 1, 0)),
            (u32::MAX, Some(u64::MAX), None, (u64::MAX, 128_849_019, 0)),
        ];
        for (window, limit, longest, expected) in table {
            let room = Room::of(window, limit, longest);
            assert_eq!((room.reserve, room.safety, room.budget()), expected, "{window} {limit:?} {longest:?}");
        }
        assert_eq!(Room::of_guess(8192, Some(16_000), None).budget(), 8192 - 2048 - 246);
        assert_eq!(Room::of_guess(8192, Some(500), None), Room::of(8192, Some(500), None));
    }
}
