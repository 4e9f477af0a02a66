"""How the budget is divided: from what the store counted to which pages are due, without rewriting a queue.

Life of a plan. The controller asks for the store's census when a cycle ends (`plan.Controller`); from it a plan is
made by a pure function, in a thread of its own, and kept in the store (`plan`). Every ant follows the plan in force
(`schedule.PlanFollower`): a schedule tells which lanes of a site's recrawl queue are due and how much of the budget is
for new pages, and fetches made are held against fetches planned.

Life of an urgent page. Under `strategy = "fountain"` what a site's visits found is learned in the worker thread; each
site tells which of its pages are worth the price of a fetch (`urgent_site`), they are made due (`urgent_pages`), and
the price follows the plan's budget (`core.site_urgency.Price`); a very large site tells it of a window of its pages
after the other; behind them stands an interval for each bucket (`schedule.UrgencySchedule`).
"""
