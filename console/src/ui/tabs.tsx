import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'

export type Tab<Name extends string> = { readonly name: Name; readonly label: string }

/** Tabs with one panel; arrow keys move between them. */
export function Tabs<Name extends string>({
  label,
  tabs,
  selected,
  onSelect,
  children,
}: {
  label: string
  tabs: readonly Tab<Name>[]
  selected: Name
  onSelect: (name: Name) => void
  children: ComponentChildren
}) {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const at = tabs.findIndex(({ name }) => name === selected)
    const next = tabs[(at + step + tabs.length) % tabs.length]
    if (next === undefined) return
    onSelect(next.name)
    list.current?.querySelector<HTMLElement>(`#${CSS.escape(`${id}-${next.name}`)}`)?.focus()
  }
  return (
    <div class="stack tight">
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab.name}
            id={`${id}-${tab.name}`}
            type="button"
            role="tab"
            aria-selected={tab.name === selected}
            aria-controls={`${id}-panel`}
            tabIndex={tab.name === selected ? 0 : -1}
            onClick={() => onSelect(tab.name)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${selected}`}>
        {children}
      </div>
    </div>
  )
}

/** One choice of a few, as a row of buttons. */
export function Segments<Name extends string>({
  label,
  choices,
  selected,
  onSelect,
}: {
  label: string
  choices: readonly Tab<Name>[]
  selected: Name
  onSelect: (name: Name) => void
}) {
  return (
    <fieldset class="segments" aria-label={label}>
      {choices.map(({ name, label: shown }) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === selected}
          onClick={() => onSelect(name)}
        >
          {shown}
        </button>
      ))}
    </fieldset>
  )
}
