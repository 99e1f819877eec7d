//! A BSF that stops while requests are pending.

use super::*;

/// A PCF that takes its time.
struct Slow(Duration);

impl Service for Slow {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        tokio::time::sleep(self.0).await;
        request.answer(ResultCode::SUCCESS).finish().unwrap()
    }
}

#[test]
fn requests_in_flight_are_answered_before_the_end() {
    local(async {
        let local =
            Capabilities::new(PCF, "example.org").with_applications([ApplicationId::tgpp(application::RX)]);
        let config = NodeConfig {
            dynamic: vec![diameter::DynamicPeers::default()],
            ..NodeConfig::new(local)
        };
        let pcf = Endpoint::new(config, Slow(Duration::from_millis(1_500)), None, 1);
        let listener = BoundListener::bind("127.0.0.1:0".parse().unwrap(), Transport::Tcp).unwrap();
        let address = listener.address();
        pcf.node().listen(listener, Security::None).unwrap();
        let mut bsf = start(|config| {
            config.workers = 2;
            config.rx.peers = vec![rx_peer(PCF, address)];
        });
        // Whichever worker each lives at.
        let afs: Vec<_> = ["af1.example", "af2.example", "af3.example", "af4.example"]
            .map(|host| peer(host).0)
            .into();
        for af in &afs {
            connect(af, &bsf).await;
        }
        pcf.available(BSF).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let running = bsf.running.take().unwrap();
        let asking = afs.iter().enumerate().map(|(number, af)| {
            let message = aar(&format!("af;end;{number}"), [10, 0, 0, 1]);
            ask(af, BSF, message)
        });
        let ending = async {
            while running.count(Event::RxForwarded) < afs.len() as u64 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::task::spawn_blocking(move || running.stop())
                .await
                .unwrap()
                .unwrap();
        };
        let (answers, ()) = tokio::join!(futures_util::future::join_all(asking), ending);
        let results: Vec<u32> = answers.iter().map(result).collect();
        assert_eq!(results, [2001; 4]);
    });
}

/// The port of a BSF that still reads its store is closed, so that AFs try the next one.
#[test]
fn a_port_is_closed_until_its_agent_serves() {
    local(async {
        let listener = BoundListener::bind("127.0.0.1:0".parse().unwrap(), Transport::Tcp).unwrap();
        let address = listener.address();
        let early = tokio::net::TcpStream::connect(address).await;
        assert_eq!(early.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
        let (pcf, _) = peer(PCF);
        pcf.node().listen(listener, Security::None).unwrap();
        tokio::net::TcpStream::connect(address).await.unwrap();
    });
}
