import { text } from '../texts/texts.ts'

export type Difference = {
  readonly name: string
  /** Empty: it has no value. */
  readonly before: string
  readonly after: string
}

/** Values before and after a change, one line each; `none` is shown where there are none. */
export function Differences({
  label,
  none,
  differences,
}: {
  label: string
  none: string
  differences: readonly Difference[]
}) {
  if (differences.length === 0) return <p class="muted">{none}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="table-box" aria-label={label} tabIndex={0}>
      <table class="table diff">
        <caption class="visually-hidden">{label}</caption>
        <thead>
          <tr>
            <th scope="col">{text('table.field')}</th>
            <th scope="col">{text('table.before')}</th>
            <th scope="col">{text('table.after')}</th>
          </tr>
        </thead>
        <tbody>
          {differences.map(({ name, before, after }) => (
            <tr key={name}>
              <th scope="row" class="mono breaking">
                {name}
              </th>
              <td>
                <Side kind="del" value={before} />
              </td>
              <td>
                <Side kind="ins" value={after} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Side({ kind: Tag, value }: { kind: 'del' | 'ins'; value: string }) {
  if (value === '') return <span class="muted">–</span>
  return (
    <Tag>
      <pre>{value}</pre>
    </Tag>
  )
}
