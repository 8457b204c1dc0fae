/** Sign in with a name and a password; why an earlier session ended is told above. */
import { useState, type FormEvent } from "react";
import { ApiError, post, tell } from "../../api/client";
import { begin } from "../../api/session";
import type { SignedIn } from "../../api/types";
import mark from "../../styles/mark.svg";
import "./signin.css";

export function SignIn({ ended }: { ended: string | null }) {
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setWrong(null);
    try {
      const found = await post<SignedIn>("/v1/sign-in", { user, password });
      begin({ token: found.token, user: found.user, expires: found.expires });
    } catch (error) {
      const known = error instanceof ApiError && error.code === "sign-in-failed";
      setWrong(known ? "The name or the password is not right." : tell(error));
      setPassword("");
    } finally {
      setBusy(false);
    }
  };

  return (
    <main className="signin">
      <form className="card" onSubmit={(event) => void submit(event)} aria-labelledby="signin-title">
        <div className="signin-head">
          <img src={mark} alt="" />
          <div>
            <h1 id="signin-title">sluicegate</h1>
            <p className="muted">Who may see what of a data stream</p>
          </div>
        </div>
        {ended && (
          <div className="note warn" role="status">
            {ended} Sign in again to go on.
          </div>
        )}
        <div className="field">
          <label htmlFor="user">Name</label>
          <input id="user" autoComplete="username" autoCapitalize="none" required value={user} onChange={(event) => setUser(event.target.value)} />
        </div>
        <div className="field">
          <label htmlFor="password">Password</label>
          <input id="password" type="password" autoComplete="current-password" required value={password} onChange={(event) => setPassword(event.target.value)} />
        </div>
        {wrong && (
          <p className="wrong" role="alert">
            {wrong}
          </p>
        )}
        <button className="primary" disabled={busy || !user || !password}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
        <a className="small muted" href="./assets/licences.txt" target="_blank" rel="noreferrer">
          Licences
        </a>
      </form>
    </main>
  );
}
