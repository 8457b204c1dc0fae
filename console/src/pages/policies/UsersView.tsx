/** Users and their roles; passwords are set here, everything else is a statement. */
import { useDeferredValue, useState } from "react";
import { get, post, tell } from "../../api/client";
import type { User } from "../../api/types";
import { show } from "../../ui/format";
import { Busy } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";
import { VirtualTable } from "../../ui/VirtualTable";

const COLUMNS = [
  { key: "name", title: "Name", width: "minmax(120px, 180px)" },
  { key: "roles", title: "Roles", width: "minmax(160px, 1fr)" },
  { key: "profile", title: "Profile", width: "minmax(160px, 1fr)" },
  { key: "state", title: "Account", width: "150px" },
];

export function UsersView({ turn, write }: { turn: number; write: (text: string) => void }) {
  const found = useLoaded((signal) => get<{ users: User[] }>("/v1/users", signal), [turn]);
  const [search, setSearch] = useState("");
  const [chosen, setChosen] = useState<User | null>(null);
  const asked = useDeferredValue(search.trim().toLowerCase());
  return (
    <Busy of={found}>
      {({ users }) => (
        <>
          <div className="body row">
            <div className="grow">
              <label className="hidden-label" htmlFor="user-search">
                Search users
              </label>
              <input id="user-search" type="search" value={search} placeholder="Search names and roles…" onChange={(event) => setSearch(event.target.value)} />
            </div>
            <button className="mini" onClick={() => write("CREATE USER name ROLES (role);")}>
              New user
            </button>
            <button className="mini" onClick={() => write("CREATE ROLE name;")}>
              New role
            </button>
          </div>
          <VirtualTable
            label="Users"
            columns={COLUMNS}
            rows={users.filter((each) => !asked || `${each.name} ${each.roles.join(" ")}`.toLowerCase().includes(asked))}
            rowKey={(row) => row.name}
            height={300}
            onRow={setChosen}
            cell={(user, key) =>
              key === "name" ? (
                <button className="quiet mini" onClick={() => setChosen(user)}>
                  {user.name}
                </button>
              ) : key === "roles" ? (
                user.roles.join(", ")
              ) : key === "profile" ? (
                Object.entries(user.profile).map(([name, value]) => `${name} = ${show(value)}`).join(", ")
              ) : user.disabled ? (
                "disabled"
              ) : user.has_password ? (
                "has a password"
              ) : (
                "no password"
              )
            }
          />
          {chosen && <Chosen key={chosen.name} user={chosen} write={write} reload={found.reload} />}
        </>
      )}
    </Busy>
  );
}

function Chosen({ user, write, reload }: { user: User; write: (text: string) => void; reload: () => void }) {
  const [password, setPassword] = useState("");
  const [told, setTold] = useState<string | null>(null);
  const name = /^[A-Za-z_]\w*$/.test(user.name) ? user.name : `"${user.name.replaceAll('"', '""')}"`;
  const save = (): void => {
    post(`/v1/users/${encodeURIComponent(user.name)}/password`, { password }).then(
      () => {
        setTold("The password is set; sessions of the old one have ended.");
        setPassword("");
        reload();
      },
      (error: unknown) => setTold(tell(error)),
    );
  };
  return (
    <div className="body stack tight chosen">
      <h3>{user.name}</h3>
      <div className="row">
        <button className="mini" onClick={() => write(`ALTER USER ${name} ADD ROLE role;`)}>
          Give a role
        </button>
        {user.roles.map((role) => (
          <button key={role} className="mini" onClick={() => write(`ALTER USER ${name} DROP ROLE ${role};`)}>
            Take away {role}
          </button>
        ))}
        <button className="mini" onClick={() => write(`ALTER USER ${name} SET (attribute = 'value');`)}>
          Set the profile
        </button>
        <button className="mini danger" onClick={() => write(`ALTER USER ${name} ${user.disabled ? "ENABLE" : "DISABLE"};`)}>
          {user.disabled ? "Enable" : "Disable"}
        </button>
      </div>
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <input className="hidden-label" autoComplete="username" readOnly tabIndex={-1} aria-hidden="true" value={user.name} />
        <label className="hidden-label" htmlFor="new-password">
          New password
        </label>
        <input id="new-password" className="narrow" type="password" autoComplete="new-password" value={password} placeholder="New password" onChange={(event) => setPassword(event.target.value)} />
        <button className="mini" disabled={!password}>
          Set password
        </button>
        {told && (
          <span className="small" role="status">
            {told}
          </span>
        )}
      </form>
    </div>
  );
}
