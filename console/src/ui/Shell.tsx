/** The frame of every page: where one is, who one is, and the way to everything else. */
import type { ReactNode } from "react";
import { post } from "../api/client";
import { end } from "../api/session";
import type { Me } from "../api/types";
import mark from "../styles/mark.svg";
import { Icon, type IconName } from "./Icon";
import { link } from "./route";
import { useTheme } from "./theme";

export interface Entry {
  page: string;
  title: string;
  icon: IconName;
}

export function Shell({ me, entries, page, children }: { me: Me; entries: Entry[]; page: string; children: ReactNode }) {
  return (
    <div className="shell">
      <a className="skip" href="#main" onClick={(event) => focusMain(event)}>
        Skip to content
      </a>
      <header className="side">
        <div className="brand">
          <img src={mark} alt="" />
          sluicegate
        </div>
        <nav aria-label="Pages">
          {entries.map((each) => (
            <a key={each.page} href={link(each.page)} aria-current={each.page === page ? "page" : undefined}>
              <Icon name={each.icon} />
              {each.title}
            </a>
          ))}
        </nav>
        <Who me={me} />
      </header>
      <main className="main" id="main" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

function focusMain(event: { preventDefault(): void }): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Who({ me }: { me: Me }) {
  const [theme, toggle] = useTheme();
  const signOut = (): void => {
    // the session is over for this tab, whatever the gateway answers
    void post("/v1/sign-out").catch(() => undefined);
    end(null);
  };
  return (
    <div className="who">
      <div className="details">
        <strong>{me.user}</strong>
        <div className="muted small">{me.is_admin ? "administrator" : me.roles.join(", ") || "no role"}</div>
      </div>
      <div className="row">
        <button className="quiet mini" onClick={toggle} aria-label={`Use the ${theme === "dark" ? "light" : "dark"} theme`}>
          <Icon name={theme === "dark" ? "sun" : "moon"} />
        </button>
        <button className="mini" onClick={signOut}>
          Sign out
        </button>
      </div>
    </div>
  );
}
