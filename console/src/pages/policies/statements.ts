/** The catalog's text as a list: one entry for each statement, with its kind and name. */
export interface Statement {
  at: number;
  kind: string;
  name: string;
  text: string;
}

/** Splits where a `;` stands outside of quotes and comments. */
export function splitStatements(text: string): string[] {
  const found: string[] = [];
  let start = 0;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const each = text[at];
    if (quote) {
      if (each === quote) quote = "";
    } else if (each === "'" || each === '"') quote = each;
    else if (each === "-" && text[at + 1] === "-") at = (text.indexOf("\n", at) + 1 || text.length) - 1;
    else if (each === ";") {
      found.push(text.slice(start, at + 1).trim());
      start = at + 1;
    }
  }
  const rest = text.slice(start).trim();
  return rest ? [...found, rest] : found;
}

const NAMED = /^(?:CREATE|SET)\s+(?:OR\s+REPLACE\s+)?(?:PUBLIC\s+)?(STREAM|ROLE|USER|GRANT|FACT|POLICY|SP|CLOCK)\s+("(?:[^"]|"")+"|'(?:[^']|'')+'|[\w.]+(?:\([^)]*\))?)/i;

export function listStatements(text: string): Statement[] {
  return splitStatements(text).map((each, at) => {
    const found = NAMED.exec(each.replace(/^(?:--[^\n]*\n\s*)+/, ""));
    return { at, kind: (found?.[1] ?? "other").toUpperCase(), name: found?.[2] ?? "", text: each };
  });
}

/** The statement that would put another in this one's place. */
export function writeEdit(statement: Statement): string {
  if (statement.kind === "GRANT" || statement.kind === "POLICY") return statement.text.replace(/^CREATE\s+(?!OR\s)/i, "CREATE OR REPLACE ");
  if (statement.kind === "USER") return `ALTER USER ${statement.name} SET (…);\n-- as it is now:\n-- ${statement.text}`;
  if (statement.kind === "ROLE") return `ALTER ROLE ${statement.name} INHERITS …;\n-- as it is now:\n-- ${statement.text}`;
  if (statement.kind === "STREAM") return `ALTER STREAM ${statement.name} …;\n-- as it is now:\n-- ${statement.text}`;
  return statement.text;
}

export function writeDrop(statement: Statement): string {
  return `DROP ${statement.kind} ${statement.name};`;
}
