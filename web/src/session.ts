// Who the page acts for: a token in this tab, got for the code of a link or typed in.
//
// It lies in the tab's sessionStorage, so that a reload keeps it and no other tab or site has it.

const kPlace = "dibs.token";

export type Refusal = { status: number; message: string };

let token = "";

function keep(value: string): void {
  token = value;
  try {
    if (value) sessionStorage.setItem(kPlace, value);
    else sessionStorage.removeItem(kPlace);
  } catch {
    // A browser that stores nothing keeps it until the tab is loaded again.
  }
}

export function bearer(): string {
  return token;
}

const kCode = "#code=";

/** Whether the address is a link that was followed. */
export const isLink = () => location.hash.startsWith(kCode);

/** The code of the address, which is taken out of it at once: it must not stay in the history. */
function takeCode(): string {
  if (!isLink()) return "";
  const code = location.hash.slice(kCode.length);
  history.replaceState(null, "", location.pathname);
  return code;
}

function kept(): string {
  try {
    return sessionStorage.getItem(kPlace) ?? "";
  } catch {
    return token;
  }
}

/** Nothing when there is a session now; else why not, "" where nobody tried. */
export async function begin(): Promise<Refusal | undefined> {
  const link = isLink();
  const code = takeCode();
  const old = kept();
  if (!link) {
    token = old;
    return token ? undefined : { status: 0, message: "" };
  }
  const failed = (status: number, message: string): Refusal => {
    token = "";
    return { status, message };
  };
  let answer: Response;
  try {
    answer = await fetch("/dibs/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
    });
  } catch (error) {
    return failed(0, String(error));
  }
  const body = (await answer.json().catch(() => ({}))) as { token?: string; message?: string };
  if (!answer.ok || !body.token) return failed(answer.status, body.message ?? answer.statusText);
  keep(body.token);
  void endOf(old);
  return undefined;
}

/** False where it cannot be one: a header takes no such letters. */
export function beginWith(typed: string): boolean {
  const wanted = typed.trim();
  if (!/^[!-~]+$/.test(wanted)) return false;
  keep(wanted);
  return true;
}

export async function end(): Promise<void> {
  const old = token;
  keep("");
  await endOf(old);
}

// Another token than that of a session is not this page's to end.
async function endOf(old: string): Promise<void> {
  if (!old.startsWith("dibs-page-")) return;
  try {
    await fetch("/dibs/session", { method: "DELETE", headers: { Authorization: `Bearer ${old}` } });
  } catch {
    // It ends by itself.
  }
}

export function forget(): void {
  keep("");
}
