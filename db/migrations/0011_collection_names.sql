ALTER TABLE "agent" ADD COLUMN "collection_ids" uuid[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
CREATE INDEX "agent_collection_ids" ON "agent" USING gin ("collection_ids");--> statement-breakpoint
CREATE UNIQUE INDEX "collection_owner_name" ON "collection" USING btree ("name","owner_id");--> statement-breakpoint
ALTER TABLE "collection" DROP CONSTRAINT "collection_name_unique";--> statement-breakpoint
-- The collection that a user means by a name: their own, or the only one that is shared with them. One
-- that is younger than the reference is another one of the same name. Null: none, or several.
create function collection_named(wanted text, reader uuid, referred_at timestamptz) returns uuid
language sql stable as $$
  select case when bool_or(own) or count(*) = 1 then (array_agg(id order by own desc))[1] end
  from (
    select collection.id, collection.owner_id = reader as own
    from collection
    where collection.name = wanted and (
      collection.owner_id = reader
      or (collection.created_at <= referred_at and exists (
        select 1 from share
        where share.resource_type = 'collection' and share.resource_id = collection.id
          and is_granted_to(share.principal_type, share.principal_id, reader, groups_of(reader)))))
  ) visible
$$;
--> statement-breakpoint
-- Agents refer to collections by id. The previous version stores names as well, which become ids when
-- they are written, so that no later collection of the name takes their place.
create function set_agent_collection_ids() returns trigger language plpgsql as $$
declare
  uuid_form constant text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  -- PostgreSQL cannot read the NUL characters of instructions. A pair of backslashes is no escape.
  readable constant json := regexp_replace(new.definition, '(\\\\)|\\u0000', '\1', 'g');
begin
  new.collection_ids := array(
    select id from (
      select distinct on (id) id, position
      from json_array_elements_text(readable -> 'collections') with ordinality as listed (item, position)
      cross join lateral (
        select case when item ~ uuid_form then item::uuid
          else collection_named(item, new.owner_id, new.updated_at) end as id
      ) resolved
      where id is not null
      order by id, position
    ) kept
    order by position);
  return new;
end
$$;
--> statement-breakpoint
create trigger set_agent_collection_ids before insert or update of definition on agent
for each row execute function set_agent_collection_ids();
--> statement-breakpoint
update agent set definition = definition;
