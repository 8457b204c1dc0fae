import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The gateway's content security policy lets in files of our own alone: nothing is inlined, nothing is fetched elsewhere.
export default defineConfig({
  base: "./",
  plugins: [react()],
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
