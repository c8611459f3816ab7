import { text } from '../texts/texts.ts'
import { Button } from './button.tsx'
import type { IconName } from './icon.tsx'
import type { Column } from './table.tsx'

export type RowAction = {
  /** The accessible name, with the name of the row: "Delete report.pdf". */
  readonly label: string
  /** What the button shows: an icon, or a word. */
  readonly icon?: IconName
  readonly word?: string
  readonly isDisabled?: boolean
  /** A link instead of a button. */
  readonly href?: string
  readonly onPress?: () => unknown
}

/** The last column of a table: what can be done with a row. Absent actions are `false`. */
export function actionsColumn<Row>(
  actionsOf: (row: Row) => readonly (RowAction | false)[],
): Column<Row> {
  return {
    name: 'actions',
    label: text('table.actions'),
    align: 'actions',
    // By position: a button that turns into its opposite keeps the focus.
    cell: (row) =>
      actionsOf(row).map((action, at) => action && <Action key={`${at}`} {...action} />),
  }
}

function Action({ label, icon, word, isDisabled = false, href, onPress }: RowAction) {
  if (href !== undefined) {
    return (
      <a class="button quiet small" href={href} aria-label={label}>
        {word ?? label}
      </a>
    )
  }
  return (
    <Button
      kind="quiet"
      size="small"
      {...(icon === undefined ? {} : { icon })}
      {...(word === undefined ? { label } : { 'aria-label': label })}
      disabled={isDisabled}
      onClick={() => void onPress?.()}
    >
      {word}
    </Button>
  )
}
