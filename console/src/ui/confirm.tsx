import { signal } from '@preact/signals'
import { text } from '../texts/texts.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'

type Question = {
  readonly title: string
  /** What happens, and whether it can be undone. */
  readonly consequence: string
  /** The verb of the button: "Revoke". */
  readonly action: string
  readonly isDangerous?: boolean
}

const asked = signal<(Question & { answer: (yes: boolean) => void }) | null>(null)

export function confirm(question: Question): Promise<boolean> {
  return new Promise((resolve) => {
    asked.value = {
      ...question,
      answer(yes) {
        asked.value = null
        resolve(yes)
      },
    }
  })
}

export function ConfirmHost() {
  const question = asked.value
  if (question === null) return null
  return (
    <Dialog
      title={question.title}
      onClose={() => question.answer(false)}
      onSubmit={() => question.answer(true)}
      actions={
        <>
          <Button onClick={() => question.answer(false)}>{text('action.cancel')}</Button>
          <Button kind={question.isDangerous ? 'danger primary' : 'primary'} type="submit">
            {question.action}
          </Button>
        </>
      }
    >
      <p>{question.consequence}</p>
    </Dialog>
  )
}
