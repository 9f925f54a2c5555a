//! Tests several threads of one host's program.

use nicety::{Cluster, ClusterConfig, Duration, Error, Host, Run, cards};
use std::future::Future;

fn alone<F>(program: impl FnOnce(Host) -> F) -> Result<Run, Error>
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    let mut cluster = Cluster::new(ClusterConfig::new(1, cards::load("spin-discrete", &[])?))?;
    cluster.program(0, program);
    cluster.run()
}

async fn broken(host: Host, ns: u64) -> Result<u32, Error> {
    host.compute(Duration::from_ns(ns)).await;
    Err(Error::Program(format!("broken after {ns} ns")))
}

#[test]
fn a_thread_that_is_joined_gives_its_result_and_its_time() {
    let run = alone(|host| async move {
        let thread = host.spawn(|host| async move {
            host.compute(Duration::from_ns(300)).await;
            Ok(host.path().origin())
        });
        host.compute(Duration::from_ns(100)).await;
        assert_eq!(host.path().at().ps(), 100_000);
        assert_eq!(thread.join().await?.ps(), 0);
        // The caller's path continues the thread's path, which includes the time of the wait.
        assert_eq!((host.path().at().ps(), host.now().ps()), (300_000, 300_000));
        let failing = host.spawn(|host| broken(host, 5));
        assert_eq!(failing.join().await, Err(Error::Program("broken after 5 ns".into())));
        Ok(())
    });
    assert_eq!(run.unwrap().end.ps(), 305_000);
}

#[test]
fn an_unawaited_thread_that_fails_ends_the_run() {
    for early in [true, false] {
        let failed = alone(move |host| async move {
            let thread = host.spawn(|host| broken(host, 50));
            if !early {
                host.compute(Duration::from_ns(100)).await;
            }
            drop(thread);
            host.compute(Duration::from_ns(1000)).await;
            Ok(())
        });
        assert_eq!(failed, Err(Error::Program("rank 0: broken after 50 ns".into())), "{early}");
    }
}

#[test]
fn the_run_waits_for_threads() {
    let run = alone(|host| async move {
        drop(host.spawn(|host| async move {
            host.compute(Duration::from_us(7)).await;
            Ok(())
        }));
        Ok(())
    });
    assert_eq!(run.unwrap().end.ps(), 7_000_000);
}
