//! [`Web`]: the listener, its connections, and the page.

use crate::api::{KEY_DIGITS_MAX, RangeQuery, Refused, Site, ValueQuery};
use crate::guard::Guard;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use forrest::Db;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::{Value as Json, json};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Connections at once. More wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// Reads of the store at once. More wait.
const READS_MAX: usize = 4;
/// Bytes of a request, for two keys and the rest. One that comes in large pieces may have up to twice as many.
const REQUEST_BYTES: usize = 2 * KEY_DIGITS_MAX + (16 << 10);
/// Time for the head of a request.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Time of a connection.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
/// Pause after a connection could not be accepted, because there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The page loads and runs what this server has, and no other page may have it in a frame or read its responses.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How a store is shown.
#[derive(Debug, Clone)]
pub struct Options {
    address: SocketAddr,
    name: String,
    metrics_file: Option<PathBuf>,
    request_time: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            name: String::new(),
            metrics_file: None,
            request_time: REQUEST_TIME,
        }
    }
}

impl Options {
    /// The defaults: 127.0.0.1, and a port that the system chooses.
    pub fn new() -> Options {
        Options::default()
    }

    /// The address to listen on, which must be a loopback address. Port 0 is one that the system chooses.
    pub fn address(mut self, address: SocketAddr) -> Options {
        self.address = address;
        self
    }

    /// The name of the store on the page.
    pub fn name(mut self, name: impl Into<String>) -> Options {
        self.name = name.into();
        self
    }

    /// The file to which another process that has the store open writes its figures
    /// ([`Builder::metrics_file`](forrest::Builder::metrics_file)). While it is there, the page shows these.
    pub fn metrics_file(mut self, file: impl Into<PathBuf>) -> Options {
        self.metrics_file = Some(file.into());
        self
    }

    /// Time for the head of a request, 10 seconds by default.
    pub fn request_time(mut self, time: Duration) -> Options {
        self.request_time = time;
        self
    }
}

/// A server that listens, and serves once [`run`](Web::run) is called.
pub struct Web {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    request_time: Duration,
}

struct Shared {
    site: Site,
    guard: Guard,
    reads: Arc<Semaphore>,
}

impl Web {
    /// Listens for requests.
    ///
    /// # Errors
    /// `InvalidInput` for an address that is not a loopback address; those of the system, such as a port in use.
    pub fn bind(db: Db, options: &Options) -> io::Result<Web> {
        if !options.address.ip().is_loopback() {
            let message = format!(
                "{} is not a loopback address, and the page has no encryption; listen on 127.0.0.1 and use a tunnel, \
                 such as ssh -L",
                options.address.ip()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let listener = TcpListener::bind(options.address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (name, metrics_file) = (options.name.clone(), options.metrics_file.clone());
        let site = Site { db, name, metrics_file, refreshed: Mutex::default() };
        let shared = Shared { site, guard: Guard::new(address)?, reads: Arc::new(Semaphore::new(READS_MAX)) };
        Ok(Web { listener, address, shared: Arc::new(shared), request_time: options.request_time })
    }

    /// The URL of the page, with the token. Who has it can read the store.
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.shared.guard.token())
    }

    /// Serves requests until `until` is ready. Connections that are open then end with the runtime.
    ///
    /// # Errors
    /// Those of the system when it takes over the listener.
    pub async fn run(self, until: impl Future<Output = ()>) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let router = router(self.shared);
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut until = std::pin::pin!(until);
        loop {
            let next = async {
                let place = connections.clone().acquire_owned().await.expect("it is never closed");
                (listener.accept().await, place)
            };
            let (accepted, place) = tokio::select! {
                () = &mut until => return Ok(()),
                next = next => next,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(self.request_time).max_buf_size(REQUEST_BYTES);
            let answered =
                http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
            tokio::spawn(async move {
                // A client that fails has no one to be reported to.
                let _ = tokio::time::timeout(CONNECTION_TIME, answered).await;
                drop(place);
            });
        }
    }
}

impl fmt::Debug for Web {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("address", &self.address).finish_non_exhaustive()
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(|| async { file("text/html; charset=utf-8", include_str!("assets/index.html")) }))
        .route(
            "/app.js",
            get(|| async { file("text/javascript; charset=utf-8", include_str!("assets/app.js")) }),
        )
        .route(
            "/style.css",
            get(|| async { file("text/css; charset=utf-8", include_str!("assets/style.css")) }),
        )
        .route("/api/keyspaces", get(keyspaces))
        .route("/api/range", get(range))
        .route("/api/value", get(value))
        .route("/api/figures", get(figures))
        .fallback(|| async { answer(Err((404, "there is no such page".to_owned()))) })
        .layer(middleware::from_fn_with_state(shared.clone(), guarded))
        .with_state(shared)
}

/// Refuses what is not of the page, and says to the browser what the page may do.
async fn guarded(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let refused = shared.guard.refuse(request.method(), request.uri(), request.headers());
    let mut response = match refused {
        Some((code, why)) => answer(Err((code.as_u16(), why.to_owned()))),
        None => next.run(request).await,
    };
    let rules: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in rules {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn file(kind: &'static str, content: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], content).into_response()
}

fn answer(result: Result<Json, Refused>) -> Response {
    let (code, json) = match result {
        Ok(json) => (StatusCode::OK, json),
        Err((code, why)) => {
            (StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), json!({"error": why}))
        }
    };
    (code, [(header::CONTENT_TYPE, "application/json")], json.to_string()).into_response()
}

/// Reads the store on a thread that may wait for the device.
async fn read(
    shared: Arc<Shared>,
    what: impl FnOnce(&Site) -> Result<Json, Refused> + Send + 'static,
) -> Response {
    let place = shared.reads.clone().acquire_owned().await.expect("it is never closed");
    // A client that leaves does not end the read, which keeps its place.
    let done = spawn_blocking(move || {
        let result = what(&shared.site);
        drop(place);
        result
    })
    .await;
    answer(done.unwrap_or_else(|_| Err((500, "the read has failed; this is a defect".to_owned()))))
}

fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Refused> {
    query.map(|Query(query)| query).map_err(|wrong| (400, wrong.body_text()))
}

async fn keyspaces(State(shared): State<Arc<Shared>>) -> Response {
    read(shared, Site::keyspaces).await
}

async fn range(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    given: Result<Query<RangeQuery>, QueryRejection>,
) -> Response {
    read(shared, move |site| site.range(&query(given)?.with(&headers)?)).await
}

async fn value(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    given: Result<Query<ValueQuery>, QueryRejection>,
) -> Response {
    read(shared, move |site| site.value(&query(given)?.with(&headers)?)).await
}

async fn figures(State(shared): State<Arc<Shared>>) -> Response {
    read(shared, Site::figures).await
}
