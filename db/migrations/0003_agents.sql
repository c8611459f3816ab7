CREATE TABLE "agent" (
	"id" uuid PRIMARY KEY NOT NULL,
	"owner_id" uuid NOT NULL,
	"definition" text NOT NULL,
	"visibility" text NOT NULL,
	"groups" text[] NOT NULL,
	"user_ids" uuid[] NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "agent_visibility" CHECK ("agent"."visibility" in ('owner', 'groups', 'users', 'everyone'))
);
--> statement-breakpoint
CREATE INDEX "agent_owner_id" ON "agent" USING btree ("owner_id","id");--> statement-breakpoint
CREATE INDEX "agent_groups" ON "agent" USING gin ("groups");--> statement-breakpoint
CREATE INDEX "agent_user_ids" ON "agent" USING gin ("user_ids");--> statement-breakpoint
CREATE INDEX "agent_everyone" ON "agent" USING btree ("id") WHERE "agent"."visibility" = 'everyone';