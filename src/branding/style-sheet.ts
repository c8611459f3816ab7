import { colorNames, type Scheme, type Theme } from './theme.ts'

/** Names and values of CSS custom properties. */
export type CssVariables = Readonly<Record<string, string>>

/** The variables of each scheme; what is the same in both stands in `root`. */
export function cssVariables(theme: Theme): Record<'root' | Scheme, CssVariables> {
  return {
    root: {
      '--brand-radius': `${theme.radiusPx}px`,
      '--brand-font-family': theme.fonts.map(spellFont).join(', '),
      '--brand-font-scale': String(theme.fontScale),
    },
    light: colorVariables(theme, 'light'),
    dark: colorVariables(theme, 'dark'),
  }
}

/** A style sheet that a portal may link to. */
export function styleSheet(theme: Theme): string {
  const { root, light, dark } = cssVariables(theme)
  switch (theme.mode) {
    case 'light':
      return rule({ 'color-scheme': 'light', ...root, ...light })
    case 'dark':
      return rule({ 'color-scheme': 'dark', ...root, ...dark })
    case 'system':
      return (
        rule({ 'color-scheme': 'light dark', ...root, ...light }) +
        `@media (prefers-color-scheme: dark) {\n${rule(dark)}}\n`
      )
  }
}

function colorVariables({ colors }: Theme, scheme: Scheme): CssVariables {
  return Object.fromEntries(
    colorNames.map((name) => [`--brand-${name.replace('_', '-')}`, colors[scheme][name]]),
  )
}

/** These are words of the language, and with quotes they would be families of that name. */
const genericFonts: ReadonlySet<string> = new Set([
  'serif',
  'sans-serif',
  'monospace',
  'cursive',
  'fantasy',
  'math',
  'emoji',
  'system-ui',
  'ui-serif',
  'ui-sans-serif',
  'ui-monospace',
  'ui-rounded',
  '-apple-system',
])

function spellFont(name: string): string {
  return genericFonts.has(name) ? name : `"${name}"`
}

function rule(declarations: CssVariables): string {
  const lines = Object.entries(declarations).map(([name, value]) => `  ${name}: ${value};\n`)
  return `:root {\n${lines.join('')}}\n`
}
