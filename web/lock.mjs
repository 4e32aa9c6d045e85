// After `npm install`: takes the registry's addresses out of the lock file, where the integrity of each
// package is what counts, and lists the variants for other systems that the registry did not offer here.

import { readFileSync, writeFileSync } from 'node:fs'

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
for (const entry of Object.values(lock.packages)) {
  delete entry.resolved
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const place = `node_modules/${name}`
    if (lock.packages[place] || !/^\d/.test(version)) continue
    const [, os, cpu, libc] = /(android|darwin|freebsd|linux|openharmony|win32|wasm32)-(\w+)-?(gnu|musl)?/.exec(name) ?? []
    if (!os) continue
    const system = os === 'wasm32' ? { cpu: ['wasm32'] } : { os: [os], cpu: [cpu] }
    lock.packages[place] = { version, optional: true, ...system, ...(libc ? { libc: [libc === 'gnu' ? 'glibc' : libc] } : {}) }
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)))
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`)
