import { format } from '../texts/texts.ts'

/** How much of something is done; without `max` that is unknown. */
export function Progress({
  label,
  value,
  max,
  tone,
}: {
  label: string
  value: number
  max: number | null
  /** Of limits: near, and reached. */
  tone?: 'warn' | 'bad' | undefined
}) {
  const share = max === null || max === 0 ? 0 : Math.min(1, value / max)
  const percent = format.number(share, { style: 'percent' })
  return (
    <div
      class={tone === undefined ? 'progress' : `progress ${tone}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      {...(max === null
        ? {}
        : { 'aria-valuenow': Math.round(share * 100), 'aria-valuetext': percent })}
    >
      <div style={{ width: `${share * 100}%` }} />
    </div>
  )
}
