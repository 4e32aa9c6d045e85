import { defineConfig } from 'vitest/config'

// `npm run dev` shows the page of a daemon that listens: STAFETTE_DEV=http://127.0.0.1:4690
const daemon = process.env['STAFETTE_DEV'] ?? 'http://127.0.0.1:4690'

export default defineConfig({
  build: {
    target: 'es2022',
    // The page allows no inline script and no data: fonts; small files stay files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    rolldownOptions: { output: { entryFileNames: 'assets/[name]-[hash].js' } },
  },
  server: { proxy: { '/v1': { target: daemon, ws: true }, '/login': daemon, '/healthz': daemon } },
  test: { include: ['test/**/*.test.ts'], environment: 'node' },
})
