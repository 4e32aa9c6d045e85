import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Plugin, defineConfig } from 'vite'


// `npm run dev` shows the page of a daemon that listens: STAFETTE_DEV=http://127.0.0.1:4690
const daemon = process.env['STAFETTE_DEV'] ?? 'http://127.0.0.1:4690'

/** Puts a smaller form beside every file that gains from it. */
function packed(): Plugin {
  let folder = 'dist'
  return {
    name: 'packed',
    apply: 'build',
    configResolved: (config) => {
      folder = config.build.outDir
    },
    closeBundle: () => {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(html|js|css|svg)$/.test(entry.name)) continue
        const path = join(entry.parentPath, entry.name)
        const bytes = readFileSync(path)
        const small = gzipSync(bytes, { level: 9 })
        if (small.length < bytes.length * 0.9) writeFileSync(`${path}.gz`, small)
      }
    },
  }
}

export default defineConfig({
  plugins: [packed()],
  build: {
    target: 'es2022',
    // The page allows no inline script and no data: fonts; small files stay files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    rolldownOptions: { output: { entryFileNames: 'assets/[name]-[hash].js' } },
  },
  server: { proxy: { '/v1': { target: daemon, ws: true }, '/healthz': daemon } },
})
