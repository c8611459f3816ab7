import type { Theme } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'

/** Without the logo, which is changed by itself. */
export type PlainTheme = Omit<Theme, 'logo_url'>
type ColourName = keyof Theme['colors']['light']

export const colourNames: readonly ColourName[] = [
  'primary',
  'on_primary',
  'background',
  'surface',
  'text',
  'muted',
  'border',
  'success',
  'warning',
  'danger',
]
const schemes = ['light', 'dark'] as const

/** Forms that the API accepts; it checks them in the end. */
export function isColor(value: string): boolean {
  return /^\s*(#([0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})|oklch\([^()]+\))\s*$/i.test(value)
}

export function ThemeForm({
  theme,
  onTheme,
  failing,
}: {
  theme: PlainTheme
  onTheme: (theme: PlainTheme) => void
  /** Pairs without enough contrast: `light.primary/background`. */
  failing: readonly string[]
}) {
  const isNumber = (value: string) => value.trim() !== '' && Number.isFinite(Number(value))
  return (
    <>
      <Card title={text('branding.look')}>
        <div class="schema-fields">
          <TextField
            label={text('branding.name')}
            value={theme.product_name}
            onValue={(name) => onTheme({ ...theme, product_name: name })}
          />
          <SelectField
            label={text('branding.mode')}
            value={theme.mode}
            onValue={(mode) => onTheme({ ...theme, mode: mode as Theme['mode'] })}
            options={(['system', 'light', 'dark'] as const).map((mode) => ({
              value: mode,
              label: text(`app.scheme.${mode}`),
            }))}
          />
          <TextField
            label={text('branding.fonts')}
            hint={text('branding.fonts_hint')}
            value={theme.font_family}
            onValue={(fonts) => onTheme({ ...theme, font_family: fonts })}
          />
          <TextField
            type="number"
            min={0}
            max={32}
            label={text('branding.radius')}
            value={String(theme.radius_px)}
            onValue={(value) => isNumber(value) && onTheme({ ...theme, radius_px: Number(value) })}
          />
          <TextField
            type="number"
            min={0.75}
            max={1.5}
            step={0.05}
            label={text('branding.scale')}
            value={String(theme.font_scale)}
            onValue={(value) => isNumber(value) && onTheme({ ...theme, font_scale: Number(value) })}
          />
        </div>
      </Card>
      <Card title={text('branding.colours')}>
        <div class="colours">
          <span />
          {schemes.map((scheme) => (
            <strong key={scheme}>{text(`app.scheme.${scheme}`)}</strong>
          ))}
          {colourNames.flatMap((name) => [
            <span key={name} class="colour-name">
              {text(`branding.colour.${name}`)}
            </span>,
            ...schemes.map((scheme) => (
              <Colour
                key={`${name} ${scheme}`}
                label={text('branding.colour_of', {
                  name: text(`branding.colour.${name}`),
                  scheme: text(`app.scheme.${scheme}`),
                })}
                value={theme.colors[scheme][name]}
                isFailing={failing.some((pair) => pair.startsWith(`${scheme}.${name}/`))}
                onValue={(colour) =>
                  onTheme({
                    ...theme,
                    colors: {
                      ...theme.colors,
                      [scheme]: { ...theme.colors[scheme], [name]: colour },
                    },
                  })
                }
              />
            )),
          ])}
        </div>
        <p class="small muted">{text('branding.colours_hint')}</p>
      </Card>
    </>
  )
}

function Colour({
  label,
  value,
  isFailing,
  onValue,
}: {
  label: string
  value: string
  isFailing: boolean
  onValue: (value: string) => void
}) {
  const isBad = !isColor(value)
  const picked = /^#[0-9a-f]{6}/i.exec(value)?.[0] ?? '#000000'
  return (
    <span class="colour">
      <input
        type="color"
        aria-label={text('branding.pick', { name: label })}
        value={picked}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
      <input
        class="input"
        aria-label={label}
        aria-invalid={isBad || isFailing ? 'true' : undefined}
        title={isBad ? text('branding.colours_hint') : undefined}
        spellcheck={false}
        autocomplete="off"
        value={value}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
    </span>
  )
}
