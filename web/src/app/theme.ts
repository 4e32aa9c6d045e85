// Light or dark: the system's choice until somebody makes one here.

import { effect, signal } from '@preact/signals'

export type Theme = 'light' | 'dark'

const KEY = 'stafette.theme'
const system = matchMedia('(prefers-color-scheme: dark)')

function stored(): Theme | null {
  try {
    const text = localStorage.getItem(KEY)
    return text === 'light' || text === 'dark' ? text : null
  } catch {
    return null
  }
}

export const theme = signal<Theme>(stored() ?? (system.matches ? 'dark' : 'light'))

export function toggleTheme(): void {
  theme.value = theme.value === 'dark' ? 'light' : 'dark'
  try {
    localStorage.setItem(KEY, theme.value)
  } catch {
    // A browser that keeps nothing: the choice lasts as long as the page.
  }
}

system.addEventListener('change', () => {
  if (!stored()) theme.value = system.matches ? 'dark' : 'light'
})

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
})

/** Whether things may move. */
export const still = matchMedia('(prefers-reduced-motion: reduce)')

/** A setting of this browser that is a number. */
export function setting(name: string, otherwise: number): { get(): number; set(value: number): void } {
  const key = `stafette.${name}`
  return {
    get() {
      try {
        const value = Number(localStorage.getItem(key))
        return Number.isFinite(value) && value > 0 ? value : otherwise
      } catch {
        return otherwise
      }
    },
    set(value) {
      try {
        localStorage.setItem(key, String(value))
      } catch {
        // See above.
      }
    },
  }
}
