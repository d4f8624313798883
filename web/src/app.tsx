// The page around the views: who is signed in, which view is shown, in which language and colours.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { emptyCluster, followCluster, type Cluster } from "./cluster";
import { Devices } from "./devices";
import { Health } from "./health";
import { kPeriod } from "./history";
import { Journeys } from "./journeys";
import { makeModel } from "./model";
import { Queue } from "./queue";
import { begin, beginWith, end, forget, isLink, type Refusal } from "./session";
import { Usage } from "./usage";
import { currentLanguage, setLanguage, t, type Language, type Word } from "./words";

const kViews = ["devices", "journeys", "queue", "health", "usage"] as const;
type View = (typeof kViews)[number];
const kThemes = ["auto", "light", "dark"] as const;
type Theme = (typeof kThemes)[number];

// Often enough to be live, seldom enough for a thousand nodes.
const kDrawEvery = 250;

const viewOf = (hash: string): View => kViews.find((one) => hash === `#${one}`) ?? "devices";

function keptTheme(): Theme {
  try {
    return kThemes.find((one) => one === localStorage.getItem("dibs.theme")) ?? "auto";
  } catch {
    return "auto";
  }
}

function SignIn({ refusal, entered }: { refusal: Refusal; entered: () => void }) {
  const [typed, setTyped] = useState("");
  const [wrong, setWrong] = useState<Word>();
  let said = "";
  if (wrong) said = t(wrong);
  else if (refusal.message) said = `${t("badCode")} ${refusal.message}`;
  else if (refusal.status === 401) said = t("refused");
  return (
    <main id="content" class="sign-in">
      <h1>dibs</h1>
      {said && (
        <p class="error" role="alert">
          {said}
        </p>
      )}
      <p>{t("tokenHint")}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!typed.trim()) setWrong("tokenWanted");
          else if (!beginWith(typed)) setWrong("refused");
          else entered();
        }}
      >
        <label>
          {t("token")}{" "}
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <button type="submit">{t("signIn")}</button>
      </form>
    </main>
  );
}

function Problems({
  cluster,
  setNamespace,
}: {
  cluster: Cluster;
  setNamespace: (name: string) => void;
}) {
  const [typed, setTyped] = useState(cluster.namespace || "default");
  const problems = [...cluster.problems];
  // Explanations are events, of which is told once.
  const forbidden = problems.filter(
    ([kind, problem]) => problem.status === 403 && kind !== "explained",
  );
  const lost = problems.some(([, problem]) => problem.status !== 403 && problem.status !== 401);
  return (
    <>
      {lost && (
        <p class="error" role="status">
          {t("lost")}{" "}
          <span class="faint">
            {problems.find(([, problem]) => problem.status !== 403)?.[1].message}
          </span>
        </p>
      )}
      {forbidden.length > 0 && (
        <div class="notice" role="status">
          <p>{t("notAllowed")}</p>
          <ul>
            {forbidden.map(([kind, problem]) => (
              <li key={kind}>{problem.message}</li>
            ))}
          </ul>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              setNamespace(typed.trim());
            }}
          >
            <label>
              {t("onlyNamespace")}{" "}
              <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
            </label>
            <button type="submit">{t("show")}</button>
          </form>
        </div>
      )}
      {cluster.namespace && (
        <p class="notice">{`${cluster.namespace}: ${t("onlyNamespaceHint")}`}</p>
      )}
      {cluster.absent.size > 0 && (
        <p class="notice">{`${t("absent")} ${[...cluster.absent].join(", ")}`}</p>
      )}
    </>
  );
}

function Live({
  view,
  theme,
  signedOut,
}: {
  view: View;
  theme: Theme;
  signedOut: (refusal: Refusal) => void;
}) {
  const [namespace, setNamespace] = useState("");
  const [version, setVersion] = useState(0);
  const [now, setNow] = useState(Date.now());
  const cluster = useRef(emptyCluster());
  const model = useMemo(() => makeModel(cluster.current), [version]);
  useEffect(() => {
    cluster.current = emptyCluster();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = followCluster(cluster.current, namespace, () => {
      if ([...cluster.current.problems.values()].some((problem) => problem.status === 401)) {
        signedOut({ status: 401, message: "" });
        return;
      }
      timer ??= setTimeout(() => {
        timer = undefined;
        setVersion((before) => before + 1);
      }, kDrawEvery);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [namespace]);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), kPeriod);
    return () => clearInterval(timer);
  }, []);
  const { loaded, absent, problems } = cluster.current;
  const ready = ["nodes", "pods", "resourceclaims", "resourceslices"].every(
    (kind) => loaded.has(kind as never) || absent.has(kind as never) || problems.has(kind as never),
  );
  return (
    // Views that do not scroll by themselves are scrolled here, by keyboard, too.
    <main id="content" tabIndex={view === "devices" || view === "journeys" ? -1 : 0}>
      <h1 class="unseen">{t(view)}</h1>
      <Problems cluster={cluster.current} setNamespace={setNamespace} />
      {!ready && <p role="status">{t("loading")}</p>}
      {ready && view === "devices" && <Devices model={model} themed={theme} />}
      {ready && view === "journeys" && <Journeys model={model} />}
      {ready && view === "queue" && <Queue model={model} now={now} />}
      {ready && view === "health" && <Health model={model} />}
      {ready && view === "usage" && (
        <Usage model={model} namespace={cluster.current.namespace} themed={theme} />
      )}
    </main>
  );
}

export function App({ first }: { first: Refusal | undefined }) {
  const [refusal, setRefusal] = useState(first);
  const [view, setView] = useState(viewOf(location.hash));
  const [language, changeLanguage] = useState<Language>(currentLanguage());
  const [theme, setTheme] = useState<Theme>(keptTheme());
  const [session, setSession] = useState(0);
  useEffect(() => {
    const changed = async () => {
      // A link that is followed in a tab that shows the page already loads nothing anew.
      if (isLink()) {
        setRefusal(await begin());
        setSession((before) => before + 1);
      }
      setView(viewOf(location.hash));
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("dibs.theme", theme);
    } catch {
      // It holds until the tab is loaded again.
    }
  }, [theme]);
  useEffect(() => setLanguage(language), [language]);
  useEffect(() => {
    document.title = refusal ? "dibs" : `${t(view)} – dibs`;
  }, [view, language, refusal]);
  const signedIn = refusal === undefined;
  return (
    <div class="page">
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("content")?.focus();
        }}
      >
        {t("skip")}
      </a>
      <header>
        <strong class="brand">dibs</strong>
        {signedIn && (
          <nav aria-label={t("views")}>
            {kViews.map((one) => (
              <a key={one} href={`#${one}`} aria-current={one === view ? "page" : undefined}>
                {t(one)}
              </a>
            ))}
          </nav>
        )}
        <div class="tools">
          <button
            type="button"
            title={t("languageHint")}
            lang={language === "en" ? "zh-CN" : "en"}
            onClick={() => {
              const next = language === "en" ? "zh" : "en";
              setLanguage(next);
              changeLanguage(next);
            }}
          >
            {t("language")}
          </button>
          <button
            type="button"
            title={t("theme")}
            onClick={() => setTheme(kThemes[(kThemes.indexOf(theme) + 1) % kThemes.length]!)}
          >
            {t(`theme_${theme}` as Word)}
          </button>
          {signedIn && (
            <button
              type="button"
              onClick={() => {
                void end();
                setRefusal({ status: 0, message: "" });
              }}
            >
              {t("signOut")}
            </button>
          )}
        </div>
      </header>
      {signedIn ? (
        <Live
          key={session}
          view={view}
          theme={theme}
          signedOut={(why) => {
            forget();
            setRefusal(why);
          }}
        />
      ) : (
        <SignIn key={session} refusal={refusal} entered={() => setRefusal(undefined)} />
      )}
    </div>
  );
}
