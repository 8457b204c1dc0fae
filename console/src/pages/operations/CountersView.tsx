/** The gateway's own counters, as it tells them to monitoring. */
import { request } from "../../api/client";
import { Busy } from "../../ui/States";
import { useLoaded } from "../../ui/useLoaded";

interface Counter {
  name: string;
  help: string;
  value: number;
}

export function readCounters(text: string): Counter[] {
  const helps = new Map<string, string>();
  const sums = new Map<string, number>();
  for (const line of text.split("\n")) {
    const help = /^# HELP (\S+) (.*)$/.exec(line);
    if (help) helps.set(help[1]!, help[2]!);
    const value = /^([a-z_]+)(?:\{.*\})? ([-+.\deE]+)$/.exec(line);
    if (value) sums.set(value[1]!, (sums.get(value[1]!) ?? 0) + Number(value[2]));
  }
  return [...helps].map(([name, told]) => ({ name, help: told, value: sums.get(name) ?? 0 }));
}

export function CountersView() {
  const found = useLoaded(async (signal) => readCounters(await (await request("/metrics", { signal })).text()), [], 3000);
  return (
    <Busy of={found}>
      {(counters) => (
        <dl className="counters">
          {counters.map((each) => (
            <div key={each.name}>
              <dt>{each.help}</dt>
              <dd>{each.value.toLocaleString()}</dd>
            </div>
          ))}
        </dl>
      )}
    </Busy>
  );
}
