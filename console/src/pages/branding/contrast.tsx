import type { ThemePreview } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { colourNames } from './theme-form.tsx'

type Pair = ThemePreview['contrast'][number]

/** Which pairs of colours can be read (WCAG 2.2 AA), and what would help those that cannot. */
export function Contrast({
  pairs,
  onUse,
}: {
  pairs: readonly Pair[]
  /** `light.primary`, and the colour that passes. */
  onUse: (field: string, colour: string) => void
}) {
  const failing = pairs.filter(({ pass }) => !pass)
  return (
    <div class="stack tight">
      <p role="status">
        <span class={failing.length === 0 ? 'status good' : 'status bad'}>
          {failing.length === 0
            ? text('branding.all_pass', { count: pairs.length })
            : text('branding.failing', { count: failing.length })}
        </span>
      </p>
      <ul class="contrasts">
        {pairs
          .toSorted((one, other) => Number(one.pass) - Number(other.pass))
          .map((pair) => (
            <PairRow key={pair.pair} {...pair} onUse={onUse} />
          ))}
      </ul>
    </div>
  )
}

function PairRow({
  pair,
  ratio,
  required,
  pass,
  suggestion,
  onUse,
}: Pair & { onUse: (field: string, colour: string) => void }) {
  const [field = '', background = ''] = pair.split('/')
  const [scheme, foreground = ''] = field.split('.')
  const label = text('branding.pair', {
    scheme: text(scheme === 'dark' ? 'app.scheme.dark' : 'app.scheme.light'),
    foreground: nameOf(foreground),
    background: nameOf(background),
  })
  const show = (value: number) => format.number(value, { maximumFractionDigits: 2 })
  return (
    <li>
      <span class={pass ? 'status good' : 'status bad'}>
        <span class="visually-hidden">{text(pass ? 'branding.passes' : 'branding.fails')} </span>
      </span>
      <span class="grow">{label}</span>
      <span class="small muted nowrap">
        {text('branding.ratio', { ratio: show(ratio), required: show(required) })}
      </span>
      {!pass && suggestion !== null && (
        <Button
          size="small"
          aria-label={text('branding.use_for', { colour: suggestion, name: label })}
          onClick={() => onUse(field, suggestion)}
        >
          {text('branding.use', { colour: suggestion })}
        </Button>
      )}
    </li>
  )
}

function nameOf(name: string): string {
  const known = colourNames.find((one) => one === name)
  return known === undefined ? name : text(`branding.colour.${known}`)
}
