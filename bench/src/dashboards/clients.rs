//! Many clients that each query all panels in turn.

use super::data_source::DataSource;
use lanes_support::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// Queries all panels of every data source concurrently until `beside` has ended. Each source
/// starts with a different panel. Returns the result of `beside`, and the milliseconds of all
/// queries.
///
/// # Errors
/// A data source refuses a panel, or `beside` fails.
pub fn ask_beside<S, T>(
    sources: &mut [S],
    panels: &[usize],
    beside: impl FnOnce() -> Result<T>,
) -> Result<(T, Vec<f64>)>
where
    S: DataSource + Send,
{
    let is_over = AtomicBool::new(false);
    let count = sources.len().max(1);
    std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for (place, source) in sources.iter_mut().enumerate() {
            let is_over = &is_over;
            clients.push(scope.spawn(move || {
                let mut times = Vec::new();
                let mut next = place * panels.len() / count;
                while !is_over.load(Ordering::Relaxed) {
                    let (_, milliseconds) = source.ask(panels[next % panels.len()])?;
                    times.push(milliseconds);
                    next += 1;
                }
                Ok::<_, Error>(times)
            }));
        }
        let result = beside();
        is_over.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for client in clients {
            let joined = client.join();
            times.extend(joined.map_err(|_| Error::Other("a client panicked".to_owned()))??);
        }
        Ok((result?, times))
    })
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answer;
    use super::*;
    use std::sync::Mutex;

    struct Fake<'a> {
        asked: &'a Mutex<Vec<usize>>,
        refuses: usize,
    }

    impl DataSource for Fake<'_> {
        fn ask(&mut self, panel: usize) -> Result<(Answer, f64)> {
            self.asked.lock().unwrap().push(panel);
            match panel == self.refuses {
                true => Err(Error::Other("no".to_owned())),
                false => Ok((Answer::default(), 1.0)),
            }
        }
    }

    #[test]
    fn clients_query_until_the_end_and_report_a_refusal() {
        let asked = Mutex::new(Vec::new());
        let source = |refuses| Fake {
            asked: &asked,
            refuses,
        };
        let until_all = || {
            while (0..4).any(|panel| !asked.lock().unwrap().contains(&panel)) {
                std::thread::yield_now();
            }
            Ok("over")
        };
        let panels = [0, 1, 2, 3];
        let (result, times) = ask_beside(&mut [source(9), source(9)], &panels, until_all).unwrap();
        assert_eq!((result, times.len()), ("over", asked.lock().unwrap().len()));
        asked.lock().unwrap().clear();
        let until_refused = || {
            while !asked.lock().unwrap().contains(&2) {
                std::thread::yield_now();
            }
            Ok(())
        };
        let refused = ask_beside(&mut [source(2)], &panels, until_refused).unwrap_err();
        assert_eq!(refused.to_string(), "no");
    }
}
