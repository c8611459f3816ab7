import { format } from '../../texts/texts.ts'
import { type Bar, ceilingOf } from './period.ts'

const width = 1000
const height = 200
const gap = 0.28
const lines = [0, 0.5, 1]

/** Bars over time. Each says its own value; the table below the chart has them all. */
export function Chart({
  bars,
  label,
  unit,
  render,
}: {
  bars: readonly Bar[]
  label: string
  unit: 'hour' | 'day'
  render: (value: number) => string
}) {
  const ceiling = ceilingOf(bars.map(({ value }) => value))
  const step = width / bars.length
  const middle = bars[Math.floor(bars.length / 2)]
  return (
    <figure class="chart">
      <div class="chart-scale" aria-hidden="true">
        {lines.toReversed().map((line) => (
          <span key={line}>{render(ceiling * line)}</span>
        ))}
      </div>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {lines.map((line) => (
          <line
            key={line}
            class="chart-line"
            x1={0}
            x2={width}
            y1={height * (1 - line)}
            y2={height * (1 - line)}
            vector-effect="non-scaling-stroke"
          />
        ))}
        {bars.map(({ start, value }, at) => {
          const size = (value / ceiling) * height
          return (
            <g key={start} class="chart-bar">
              <title>{`${timeOf(start, unit)}: ${render(value)}`}</title>
              <rect class="chart-hit" x={at * step} y={0} width={step} height={height} />
              <rect
                x={at * step + (step * gap) / 2}
                y={height - size}
                width={step * (1 - gap)}
                height={size}
              />
            </g>
          )
        })}
      </svg>
      <div class="chart-times" aria-hidden="true">
        {[bars[0], middle, bars.at(-1)].map(
          (bar) => bar !== undefined && <span key={bar.start}>{timeOf(bar.start, unit)}</span>,
        )}
      </div>
    </figure>
  )
}

function timeOf(start: string, unit: 'hour' | 'day'): string {
  return unit === 'hour' ? format.time(start) : format.date(start)
}
