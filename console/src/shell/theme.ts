import { effect, signal } from '@preact/signals'
import { call } from '../api/call.ts'
import type { Theme } from '../api/generated/types.ts'

export type Scheme = 'system' | 'light' | 'dark'

const storageKey = 'sluice.scheme'

export const theme = signal<Theme | null>(null)
export const scheme = signal<Scheme>(readScheme())

function readScheme(): Scheme {
  const stored = localStorage.getItem(storageKey)
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

effect(() => {
  const { value } = scheme
  if (value === 'system') delete document.documentElement.dataset['scheme']
  else document.documentElement.dataset['scheme'] = value
})

export function chooseScheme(next: Scheme): void {
  localStorage.setItem(storageKey, next)
  scheme.value = next
}

/** Applies the brand's colours, shape and font. The style sheet has the default theme's. */
function applyTheme(next: Theme): void {
  theme.value = next
  const { style } = document.documentElement
  for (const mode of ['light', 'dark'] as const) {
    for (const [name, colour] of Object.entries(next.colors[mode])) {
      style.setProperty(`--${mode}-${name.replaceAll('_', '-')}`, colour)
    }
  }
  style.setProperty('--radius', `${next.radius_px}px`)
  style.setProperty('--font', next.font_family)
  style.setProperty('--font-scale', String(next.font_scale))
  document.title = next.product_name
  if (localStorage.getItem(storageKey) === null) scheme.value = next.mode
}

export async function loadTheme(): Promise<void> {
  const loaded = await call('GET /v1/branding/theme').catch(() => null)
  if (loaded !== null && 'colors' in loaded) applyTheme(loaded as Theme)
}
