CREATE TABLE "reindex_deleted_file" (
	"reindex_id" uuid NOT NULL,
	"file_id" uuid NOT NULL,
	CONSTRAINT "reindex_deleted_file_reindex_id_file_id_pk" PRIMARY KEY("reindex_id","file_id")
);
--> statement-breakpoint
ALTER TABLE "collection" ADD COLUMN "expires_after_days" integer;--> statement-breakpoint
ALTER TABLE "collection" ADD COLUMN "last_active_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "collection_expiring" ON "collection" USING btree ("id") WHERE "collection"."expires_after_days" is not null;--> statement-breakpoint
-- Counters of a reindex never run backwards: a completed file that is deleted stays completed.
create function keep_reindex_count() returns trigger language plpgsql as $$
begin
  insert into reindex_deleted_file (reindex_id, file_id)
  select reindex.id, old.file_id from reindex
  where reindex.id = old.reindex_id and reindex.end_counters is null
    and reindex.target_index_id = old.index_id
  on conflict do nothing;
  return null;
end
$$;
--> statement-breakpoint
create trigger keep_reindex_count after delete on file_index
for each row when (old.reindex_id is not null and old.sha256 is not null and old.state in ('done', 'pending'))
execute function keep_reindex_count();
