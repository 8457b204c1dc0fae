import { existsSync, readdirSync, readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** The licences of what the bundle contains, as a file of it. */
function tellLicences(): Plugin {
  return {
    name: "licences",
    generateBundle() {
      const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as { packages: Record<string, { dev?: boolean; license?: string; version?: string }> };
      const parts = Object.entries(lock.packages)
        .filter(([path, found]) => path && !found.dev && existsSync(path))
        .map(([path, found]) => {
          const file = readdirSync(path).find((each) => /^licen[cs]e/i.test(each));
          const text = file ? readFileSync(`${path}/${file}`, "utf8").trim() : "";
          return `${path.replace(/^.*node_modules\//, "")} ${found.version}: ${found.license ?? "see below"}\n\n${text}`;
        });
      const rule = `\n\n${"-".repeat(72)}\n\n`;
      this.emitFile({ type: "asset", fileName: "assets/licences.txt", source: ["The coastline is Natural Earth's, which is in the public domain.", ...parts].join(rule) });
    },
  };
}

// The gateway's content security policy lets in files of our own alone: nothing is inlined, nothing is fetched elsewhere.
export default defineConfig({
  base: "./",
  plugins: [react(), tellLicences()],
  build: {
    outDir: "../src/sluicegate/service/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1500,
    target: "es2022",
  },
  worker: { format: "es" },
});
