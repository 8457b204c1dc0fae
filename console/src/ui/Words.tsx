/** A sentence of the gateway: what stands in backticks there is the user's own words, and is set as such. */
export function Words({ of }: { of: string }) {
  const parts = of.split("`");
  return (
    <>
      {parts.map((part, at) => (at % 2 && at < parts.length - 1 ? <code key={at}>{part}</code> : at % 2 ? `\`${part}` : part))}
    </>
  );
}
